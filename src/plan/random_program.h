// Random programs for the tests of plan/ and exec/: small tensors, many ways to share bytes. Not for anything
// else.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "ir/builder.h"
#include "ops/accumulate.h"
#include "ops/add.h"
#include "ops/cast.h"
#include "ops/matmul.h"
#include "ops/mul.h"
#include "ops/reshape.h"
#include "ops/silu.h"
#include "ops/swiglu.h"
#include "ops/swiglu_grad.h"

namespace tenon {

class RandomProgram {
 public:
  // `seed` and `ops` decide the program. Values may go unread; some outputs are views and some live long.
  static Program make(uint32_t seed, int ops) { return RandomProgram(seed).build(ops); }

 private:
  explicit RandomProgram(uint32_t seed) : random_(seed), builder_(program_) {}

  Program build(int ops) {
    program_.name = "random";
    for (const Shape& shape : {Shape{4, 8}, Shape{8, 16}, Shape{3, 5}}) {
      values_.push_back(builder_.add_static(Role::input, "input" + shape.text(), Type{DType::f32, shape}));
    }
    while (static_cast<int>(program_.ops.size()) < ops) {
      builder_.set_role(static_cast<int>(program_.ops.size()) < ops / 2 ? Role::activation : Role::gradient);
      append();
    }
    for (int i = 0; i < 3; ++i) mark_output(values_.size() - 1 - below(std::min<size_t>(values_.size(), 6)));
    return std::move(program_);
  }

  size_t below(size_t count) { return random_() % count; }

  // Mostly a recent value, at times any.
  ValueId pick() {
    const size_t window = below(4) == 0 ? values_.size() : std::min<size_t>(values_.size(), 8);
    return values_[values_.size() - 1 - below(window)];
  }

  ValueId pick_like(ValueId wanted) {
    std::vector<ValueId> same;
    for (ValueId id : values_) {
      if (builder_.type(id) == builder_.type(wanted)) same.push_back(id);
    }
    return same[same.size() - 1 - below(std::min<size_t>(same.size(), 4))];
  }

  void mark_output(size_t index) {
    const Value& value = program_.value(values_[index]);
    if (!value.producer.valid() || value.role == Role::output) return;
    builder_.mark_output(values_[index], "output" + std::to_string(index));
  }

  void append() {
    const ValueId a = pick();
    switch (below(10)) {
      case 0:
      case 1:
        values_.push_back(add(builder_, a, pick_like(a)));
        break;
      case 2:
        values_.push_back(mul(builder_, a, pick_like(a)));
        break;
      case 3:
      case 4:
        append_matmul(a);
        break;
      case 5:
        append_reshape(a);
        break;
      case 6:
        append_accumulate(a);
        break;
      case 7:
        values_.push_back(below(2) ? silu(builder_, a) : swiglu(builder_, a, pick_like(a)));
        break;
      case 8:
        for (ValueId id : swiglu_grad(builder_, a, pick_like(a), pick_like(a))) values_.push_back(id);
        break;
      case 9:
        values_.push_back(cast(builder_, a, below(2) ? DType::bf16 : DType::f32));
        if (below(8) == 0) mark_output(values_.size() - 1);
        break;
    }
  }

  void append_matmul(ValueId a) {
    const Shape shape = builder_.shape(a);
    if (shape.rank() != 2) return;
    const int64_t n = std::vector<int64_t>{3, 8, 16, 40}[below(4)];
    if (n * shape[0] > 512 || n * shape[1] > 4096) return;
    const ValueId weight = builder_.add_static(Role::weight, "w" + Shape{n, shape[1]}.text(),
                                               Type{DType::f32, Shape{n, shape[1]}});
    MatmulOptions options{.trans_b = true, .alpha = 0.5, .out_dtype = builder_.dtype(a)};
    for (ValueId id : values_) {
      if (builder_.type(id) == Type{options.out_dtype, {shape[0], n}} && below(2)) options.addend = id;
    }
    values_.push_back(matmul(builder_, a, weight, options));
  }

  void append_reshape(ValueId a) {
    const int64_t elements = builder_.shape(a).elements();
    std::vector<Shape> shapes{Shape{elements}};
    for (int64_t rows = 1; rows <= elements; ++rows) {
      if (elements % rows == 0) shapes.push_back(Shape{rows, elements / rows});
    }
    values_.push_back(reshape(builder_, a, shapes[below(shapes.size())]));
  }

  // Into a static sum, or into a value of the program that nobody else reads.
  void append_accumulate(ValueId a) {
    if (builder_.dtype(a) != DType::f32) return;
    if (below(2)) {
      const ValueId like = pick_like(a);
      values_.push_back(accumulate(builder_, add(builder_, a, like), a));
      return;
    }
    const std::string name = "sum" + builder_.shape(a).text();
    for (auto& [known, latest] : sums_) {
      if (known == name) {
        latest = accumulate(builder_, latest, a);
        return;
      }
    }
    const ValueId total = builder_.add_static(Role::gradient_sum, name, builder_.type(a));
    sums_.emplace_back(name, accumulate(builder_, total, a));
  }

  std::mt19937 random_;
  Program program_;
  Builder builder_;
  std::vector<ValueId> values_;
  std::vector<std::pair<std::string, ValueId>> sums_;
};

}  // namespace tenon
