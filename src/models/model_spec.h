// A model as plain data: sizes and a list of blocks (block_spec.h, which has the parts of one). Reading a
// checkpoint's configuration gives one; building a Program walks it. It knows no file and no device, and
// nothing that reads it asks which family it came from.
//
// Paths are module names as transformers and PEFT use them ("model.layers.0.self_attn.q_proj"); a module's
// parameters are path + ".weight" and ".bias". Where a file calls or cuts them otherwise, `renames` and
// `stored` say how.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "models/block_spec.h"
#include "models/layer_spec.h"
#include "models/stored_block.h"
#include "models/streams_spec.h"

namespace tenon {

struct ModelSpec {
  std::string family;        // as in family_list.inc; for people and records
  std::string architecture;  // as the file names it ("LlamaForCausalLM", "llama")
  int64_t vocab = 0;
  int64_t hidden = 0;
  int64_t max_positions = 0;
  std::string embedding_path;
  int64_t embedding_width = 0;  // 0: hidden
  double embedding_scale = 1;
  NormSpec embedding_norm;
  std::string embedding_shift, embedding_weight;  // [hidden], added and then multiplied with; empty: none
  LinearSpec project_in, project_out;             // between embedding_width and hidden; absent: none
  std::string position_path;                      // learned positions [max_positions, embedding]; empty: none
  std::vector<float> position_table;              // fixed positions, likewise; empty: none
  // A second table [per_layer_vocab, blocks * per_layer_width] and a projection of the embedding, normed by
  // layer, give each token its input to each layer: (norm(projection) + scale * table) / sqrt(2).
  int64_t per_layer_width = 0, per_layer_vocab = 0;
  std::string per_layer_path;
  // What streams that are kept beside the blocks are at first: a fixed weight [hidden], or the embedding
  // where empty.
  std::vector<std::string> kept_streams;
  int64_t streams = 1;       // equal at first
  StreamsSpec head_streams;  // how the final norm reads them
  // Streams of AltUp beside the embedding, which is stream 0 and active: projections to and from them.
  std::vector<LinearSpec> stream_in, stream_out;
  LinearSpec per_layer_projection;
  NormSpec per_layer_norm;
  std::vector<RopeSpec> ropes;
  std::vector<BlockSpec> blocks;
  std::string depth_query;  // where blocks read from all before them: weight [hidden] of the final norm
  NormSpec final_norm;
  // Before the head: norm(activation(dense(x))); absent: none.
  LinearSpec head_dense;
  Activation head_activation = Activation::gelu;
  NormSpec head_norm;
  LinearSpec head;    // a bias is one more column of its weight; its channels are the vocabulary
  bool tied = false;  // the head's weight is the embedding table
  double logit_scale = 1;
  double logit_softcap = 0;

  // From logical names to tensors: parts of names to replace, in order, and weights that are cut or joined.
  std::vector<std::pair<std::string, std::string>> renames;
  std::vector<std::pair<std::string, std::string>> other_renames;  // of files that have other names
  std::map<std::string, std::vector<StoredBlock>> stored;
  std::vector<std::string> ignored;  // beginnings or ends of names of tensors that carry nothing needed
  StoredQuantisation quantisation;
  bool multimodal = false;  // the checkpoint has parts beside the language model, which are not read
};

}  // namespace tenon
