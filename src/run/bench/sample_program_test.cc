#include "run/bench/sample_program.h"

#include <gtest/gtest.h>

#include "ir/builder.h"
#include "ir/verify.h"
#include "models/forward.h"
#include "ops/accumulate.h"
#include "ops/embedding.h"
#include "ops/mul.h"
#include "ops/reshape.h"
#include "ops/scale.h"
#include "run/bench/typical_inputs.h"

namespace tenon {
namespace {

const Type kVector{DType::f32, Shape{6}};

// The role of the value that an op's input has in the sample.
Role input_role(const Program& program, size_t op, size_t input) {
  return program.value(program.ops[op].inputs[input]).role;
}

TEST(SampleProgram, WhatWasLeftOutIsAnInputAndStaticsKeepTheirNames) {
  Program whole;
  whole.name = "whole";
  Builder b(whole);
  const ValueId w = b.add_static(Role::weight, "w", kVector);
  const ValueId x = b.add_static(Role::input, "x", kVector);
  const ValueId half = scale(b, x, 0.5);     // op 0
  const ValueId product = mul(b, half, w);   // op 1
  b.mark_output(scale(b, product, 3), "y");  // op 2
  const SampledProgram sample = sample_program(whole, {false, true, false});
  ASSERT_TRUE(verify(sample.program).ok());
  EXPECT_EQ(sample.program.name, "whole");
  EXPECT_EQ(sample.ops, std::vector<int32_t>{1});
  EXPECT_EQ(input_role(sample.program, 0, 0), Role::input);
  EXPECT_EQ(input_role(sample.program, 0, 1), Role::weight);
  EXPECT_TRUE(sample.program.find("w").valid());
  EXPECT_FALSE(sample.program.find("x").valid());
  EXPECT_EQ(sample.program.value(sample.program.ops[0].outputs[0]).role, Role::output);
}

TEST(SampleProgram, OpsThatFollowEachOtherStillDoAndViewsComeAlong) {
  Program whole;
  Builder b(whole);
  const ValueId x = b.add_static(Role::input, "x", kVector);
  const ValueId matrix = reshape(b, scale(b, x, 0.5), Shape{2, 3});
  b.mark_output(scale(b, matrix, 3), "y");
  const SampledProgram sample = sample_program(whole, {true, false, true});
  ASSERT_TRUE(verify(sample.program).ok());
  EXPECT_EQ(sample.ops, (std::vector<int32_t>{0, 1, 2}));
  EXPECT_EQ(sample.program.ops[2].inputs[0], sample.program.ops[1].outputs[0]);
}

TEST(SampleProgram, AStateIsReadAsTheLastOpThatWasTakenLeftIt) {
  Program whole;
  Builder b(whole);
  ValueId sum = b.add_static(Role::gradient_sum, "sum", kVector);
  const ValueId x = b.add_static(Role::input, "x", kVector);
  for (int i = 0; i < 3; ++i) sum = accumulate(b, sum, x);
  const SampledProgram sample = sample_program(whole, {true, false, true});
  ASSERT_TRUE(verify(sample.program).ok());
  ASSERT_EQ(sample.ops, (std::vector<int32_t>{0, 2}));
  EXPECT_EQ(sample.program.ops[1].inputs[0], sample.program.ops[0].outputs[0]);
}

TEST(TypicalInput, SequencesFollowEachOtherAndIdsAreOfTheTable) {
  Program program;
  Builder b(program);
  const ValueId table = b.add_static(Role::weight, "table", {DType::f32, Shape{5, 2}});
  const ValueId ids = b.add_static(Role::input, kIdsInput, {DType::i32, Shape{7}});
  const ValueId begins = b.add_static(Role::input, kSequenceBeginInput, {DType::i32, Shape{7}});
  const ValueId positions = b.add_static(Role::input, kPositionsInput, {DType::i32, Shape{7}});
  b.mark_output(embedding(b, table, ids, DType::f32), "rows");
  EXPECT_EQ(typical_input(program, begins, 3, 0), (std::vector<int32_t>{0, 0, 0, 3, 3, 3, 6}));
  EXPECT_EQ(typical_input(program, positions, 3, 0), (std::vector<int32_t>{0, 1, 2, 0, 1, 2, 0}));
  EXPECT_EQ(typical_input(program, positions, 100, 50).front(), 50);
  for (int32_t id : typical_input(program, ids, 3, 0)) EXPECT_LT(id, 5);
  EXPECT_TRUE(typical_input(program, table, 3, 0).empty());
}

}  // namespace
}  // namespace tenon
