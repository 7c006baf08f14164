// tenon probe: logits, loss, gradients, greedy tokens and a short training curve for given token ids.
#include <cstdio>
#include <memory>

#include "base/json.h"
#include "cli/command.h"
#include "cli/device_option.h"
#include "run/probe.h"

namespace tenon {
namespace {

struct ProbeArguments {
  ProbeRequest request;
  DeviceArguments device;
  std::string gradients = "none";
  bool json = false;
};

Status run_probe(ProbeArguments& a) {
  if (a.gradients == "all") a.request.gradients = ProbeGradients::weights;
  if (a.gradients == "adapter") a.request.gradients = ProbeGradients::adapter;
  ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, open_device(a.device));
  a.request.compute = compute_dtype(a.device, device->facts());
  ASSIGN_OR_RETURN(const ProbeSummary summary, probe(a.request, *device));
  if (a.json) {
    const Json line = {{"loss", summary.loss},
                       {"trained_tokens", summary.trained_tokens},
                       {"tensors_written", summary.tensors_written},
                       {"compute", dtype_name(a.request.compute)}};
    std::printf("%s\n", line.dump().c_str());
  } else {
    std::printf("loss %.7f over %lld tokens; %lld tensors written to %s\n", summary.loss,
                static_cast<long long>(summary.trained_tokens),
                static_cast<long long>(summary.tensors_written), a.request.out.c_str());
  }
  return {};
}

}  // namespace

Command probe_command() {
  const auto a = std::make_shared<ProbeArguments>();
  ProbeRequest& r = a->request;
  Command command;
  command.name = "probe";
  command.summary =
      "Write logits, loss and gradients for given token ids, to compare with another implementation";
  command.details =
      "Reads input_ids and labels (i32 [batch, tokens]; -100 is not trained; labels are shifted inside) "
      "and writes logits, loss, and what else is asked for, in the checkpoint's own names and shapes. It "
      "goes through the same programs, plan and kernels as training and generation.";
  command.example =
      "tenon probe --model MODEL --tokens in.safetensors --out out.safetensors --grads all --greedy 24";
  command.options = {
      {"model", &r.model, "Model folder or GGUF file", "PATH", {}, {}, false, true},
      {"adapter", &r.adapter, "Adapter folder in PEFT format", "FOLDER"},
      {"tokens", &r.tokens, "Safetensors file with input_ids and labels", "FILE", {}, {}, false, true},
      {"out", &r.out, "Safetensors file to write", "FILE", {}, {}, false, true},
      {"grads", &a->gradients, "Gradients of the mean loss to write", {}, {"none", "all", "adapter"}},
      {"greedy", &r.greedy, "Tokens to continue the first nine of row 0 by", "N", {}, at_least(0)},
      {"train", &r.train_steps, "AdamW steps on the adapter", "STEPS", {}, at_least(0)},
      {"lr", &r.lr, "Learning rate of --train", {}, {}, above(0)},
      {"clip", &r.clip, "Largest gradient norm of --train; 0: no clipping", {}, {}, at_least(0)},
      {"without", &r.without, "Passes and kernels to leave out"},
      weights_option(&r.weight_choice),
      {"json", &a->json, "Print one line of JSON"},
  };
  add_device_options(command, a->device);
  command.run = [a] { return run_probe(*a); };
  return command;
}

}  // namespace tenon
