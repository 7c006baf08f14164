// Requests with the token ids that mistral-common publishes for them: the conversation goes through the
// template and the tokenizer, and the ids are the published ones. Of its requests those whose tool calls and
// results the published templates write as that library does.
#include <gtest/gtest.h>

#include <string>

#include "base/json.h"
#include "io/json_file.h"
#include "io/write_file.h"
#include "text/conversation_render.h"

namespace tenon {
namespace {

const std::string kShared = TENON_SOURCE_DIR "/../shared/data/";

struct Request {
  const char* name;
  const char* version;
};
class MistralRequests : public testing::TestWithParam<Request> {};

TEST_P(MistralRequests, BecomeThePublishedIds) {
  const std::string folder = kShared + "tokenizers/golden/mistral-common/" + GetParam().name;
  const std::string version = GetParam().version;
  const auto wanted = read_json_file(folder + "/tokens_" + version + ".json");
  if (!wanted.ok()) GTEST_SKIP() << "no " << folder;
  const auto request = read_file(folder + "/sample.json");
  const auto source = read_file(kShared + "chat_templates/mistral-common/" + version + "_spm.jinja");
  auto tokenizer = Tokenizer::from_file(kShared + "tokenizers/mistral_v0_3");
  ASSERT_TRUE(request.ok() && source.ok() && tokenizer.ok());
  const auto chat_template = ChatTemplate::parse(*source, version);
  ASSERT_TRUE(chat_template.ok()) << chat_template.error().text();
  Json variables = template_variables(&*tokenizer);
  variables.update(Json::parse(*request));
  const auto rendered = chat_template->render(variables);
  ASSERT_TRUE(rendered.ok()) << rendered.error().text();
  EXPECT_EQ(tokenizer->encode(rendered->text, {.add_special = false}),
            wanted->at("tokens").get<std::vector<int32_t>>())
      << rendered->text;
}

INSTANTIATE_TEST_SUITE_P(Forms, MistralRequests,
                         testing::Values(Request{"no_tools", "v2"}, Request{"several_calls", "v2"},
                                         Request{"several_calls", "v3"}, Request{"parallel_calls", "v3"}));

}  // namespace
}  // namespace tenon
