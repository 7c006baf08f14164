# Stopping, killing and going on; what is refused.

$ "$TESTS/make_tiny_model" m
$ for i in $(seq 40); do echo "{\"prompt\":\"Say $i\",\"completion\":\" it is $i\"}"; done > d.jsonl
$ echo 'common() { tenon train --model m --data "${data:-d.jsonl}" --rank 2 --alpha 4 --dropout 0.1 --compute f32 --tokens-per-step 128 --accumulate 2 --threads 1 --steps 300 --checkpoint-every 20 "$@"; }' > common.sh
$ . ./common.sh; common --out whole 2> /dev/null; ls whole/checkpoints
step-00000280.safetensors
step-00000300.safetensors

# Ctrl-C and SIGTERM save first; the exit code says that the run did not end.
$ . ./common.sh; for signal in INT TERM; do
>   touch $signal.log; common --out $signal --json > $signal.log 2>&1 & pid=$!
>   until [ "$(grep -c '"step"' $signal.log)" -ge 25 ]; do sleep 0.01; done
>   kill -$signal $(pgrep -P $pid tenon || echo $pid); wait $pid; echo "exit $?"; tail -2 $signal.log
> done
exit 1
tenon: stopped after step ... of 300; everything is saved
  `tenon train --resume INT` goes on.
exit 1
tenon: stopped after step ... of 300; everything is saved
  `tenon train --resume TERM` goes on.

$ for run in INT TERM; do tenon train --resume $run 2>&1 | sed -n 's/^Going on from step .*/going on/p'; cmp whole/adapter/adapter_model.safetensors $run/adapter/adapter_model.safetensors; done
going on
going on

# kill -9, before and after the first checkpoint.
$ . ./common.sh; for step in 5 50; do
>   touch kill$step.log; common --out kill$step --json > kill$step.log 2>&1 & pid=$!
>   until [ "$(grep -c '"step"' kill$step.log)" -ge $step ]; do sleep 0.01; done
>   kill -9 $(pgrep -P $pid tenon || echo $pid); wait $pid 2> /dev/null
>   tenon train --resume kill$step 2> /dev/null; cmp whole/adapter/adapter_model.safetensors kill$step/adapter/adapter_model.safetensors
> done

$ tenon runs compare whole kill50
the results are the same, bit for bit

$ tenon train --resume whole
...
The run is complete: 300 steps. --steps N goes on.

# A second process is refused while the first is at work.
$ . ./common.sh; touch busy.log; common --out busy --steps 100000 --json > busy.log 2>&1 & pid=$!
> until [ "$(grep -c '"step"' busy.log)" -ge 3 ]; do sleep 0.01; done
> tenon train --resume busy 2>&1 | tail -2; tenon runs list . | grep '^busy'
> kill -9 $(pgrep -P $pid tenon || echo $pid); wait $pid 2> /dev/null; tenon runs list . | grep '^busy'
tenon: busy: the folder is in use by process ...
  Wait until it ends or stop it, or choose another folder.
busy  ...running...
busy  ...killed...

# What changed is named.
$ tenon train --resume INT --rank 4 2>&1 | tail -2
tenon: INT: it would not be the same run: --rank was '2' and is '4'
  Put it back as it was, or begin another run with --out.
[exit 2]

$ cp d.jsonl was.jsonl; echo '{"prompt":"one","completion":" more"}' >> d.jsonl; tenon train --resume INT 2>&1 | tail -2; mv was.jsonl d.jsonl
tenon: INT: it would not be the same run: data has changed
  Put it back as it was, or begin another run with --out.

$ mkdir parts; head -20 d.jsonl > parts/a.jsonl; tail -20 d.jsonl > parts/b.jsonl; . ./common.sh; data=parts common --out many --steps 4 2> /dev/null; data=parts/a.jsonl:0.7 common --data parts/b.jsonl:0.3 --out mixed --steps 4 2> /dev/null
$ tenon train --resume mixed --data parts/a.jsonl:0.5 --data parts/b.jsonl:0.5 --steps 6 2>&1 | tail -2
tenon: mixed: it would not be the same run: data mixture has changed
  Put it back as it was, or begin another run with --out.
[exit 2]

$ tenon train --resume mixed --steps 6 2>&1 | grep Trained
Trained 6 steps in ...

$ echo '{"prompt":"one","completion":" more"}' >> parts/b.jsonl; tenon train --resume many --steps 6 2>&1 | tail -2
tenon: many: it would not be the same run: data file 2 (b.jsonl) has changed
  Put it back as it was, or begin another run with --out.
[exit 2]

$ sed -i 's/^lr: .*/lr: 1/' INT/recipe.yaml; tenon train --resume INT
tenon: INT/recipe.yaml: lr was edited: the run has '0.0002', the file says '1'
  Give it by name: --resume RUN --lr 1
[exit 2]

$ tenon train --resume TERM --steps 200 2>&1 | tail -2
tenon: TERM: 200 steps were asked for, but 300 are already taken
  Ask for more --steps.
[exit 2]

# More steps and another schedule are given by name, and recorded.
$ tenon train --resume TERM --steps 310 --schedule constant 2>&1 | grep -e Going -e Trained
Going on from step 300.
Trained 310 steps in ...

$ tenon runs show TERM | grep -e '^  steps: ' -e '^  schedule: '
  steps: 310
  schedule: constant

# Folders that hold no run.
$ mkdir empty; tenon train --resume empty
tenon: empty: the folder holds no run
  Begin it with --out, as it was begun before.
[exit 2]

$ tenon train --resume nowhere
tenon: nowhere: there is no such run folder
  Name the folder that --out named.
[exit 2]

$ tenon train --resume whole --overwrite
tenon: --overwrite: cannot stand together with --resume
[exit 2]

$ tenon train --resume whole --out other
tenon: --out: a resumed run goes on in its own folder
  Leave --out away.
[exit 2]

$ tenon train --model m --data d.jsonl --out r --checkpoint-every often
tenon: --checkpoint-every: 'often' is neither a number of steps nor of minutes
  Write 500 for steps, 10min for minutes, or 0 for the end only.
[exit 2]

$ tenon train --model m --data d.jsonl --out r --early-stop 3
tenon: --early-stop: the run is not evaluated on its way
  Add --eval-every, and --eval-data or --eval-fraction.
[exit 2]

$ tenon train --model m --data d.jsonl --out r --on-spike rollback
tenon: --on-spike: rollback needs checkpoints at fixed steps to go back to
  Write --checkpoint-every N with a number of steps.
[exit 2]
