// Typed reads of a model's configuration. The first problem is kept and reported by status(), so that a
// family file reads its keys in a straight line and checks once; after a problem the reads return their
// defaults.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace tenon {

// A key with a value that nothing asked for; of one in an object, "object.key".
struct UnreadKey {
  std::string path;
  const Json* value;
};

class ConfigReader {
 public:
  // `object` must outlive the reader; `subject` names the file in errors.
  ConfigReader(const Json& object, std::string subject);

  // From now on `key` stands for `name` in the file.
  void alias(std::string_view key, std::string_view name);
  // What a required size is where the file leaves it out.
  void suppose(std::string_view key, int64_t size) { supposed_.insert_or_assign(std::string(key), size); }
  // Absent keys and nulls are the same thing.
  bool has(std::string_view key) const;

  int64_t integer(std::string_view key);  // required
  // Required, 1 .. 2^24, and no three sizes together so large that a weight of them could not be counted.
  int64_t positive(std::string_view key);
  int64_t positive_or(std::string_view key, int64_t otherwise);
  double number(std::string_view key);  // required
  double number_or(std::string_view key, double otherwise);
  bool flag_or(std::string_view key, bool otherwise);
  std::string text_or(std::string_view key, std::string_view otherwise);
  std::vector<std::string> texts_or_empty(std::string_view key);
  // Infinity may be written as {"__float__": "Infinity"}.
  std::vector<double> numbers_or_empty(std::string_view key);
  bool is_object(std::string_view key) const;
  bool is_text(std::string_view key) const;
  bool is_list(std::string_view key) const;
  // The object under a key, or nothing. Problems found through it are reported by its own status(); what it
  // reads counts for this reader, which must outlive it.
  std::optional<ConfigReader> object(std::string_view key);

  // Keeps an error found by the caller (a contradiction between keys), if it is the first.
  void fail(Error error);
  void require(bool condition, std::string_view key, std::string message);

  // Says that a key is known and needs no reading.
  void ignore(std::string_view key) const { read_->names.insert(name_of(key)); }
  // In objects, of those that were opened by object().
  std::vector<UnreadKey> unread() const;

  const std::string& subject() const { return subject_; }
  Status status() const;

 private:
  struct ReadKeys {
    std::set<std::string, std::less<>> names;
    std::map<std::string, std::unique_ptr<ReadKeys>, std::less<>> nested;
  };

  ConfigReader(const Json& object, std::string subject, ReadKeys& read);
  static void add_unread(const Json& object, const ReadKeys& read, const std::string& prefix,
                         std::vector<UnreadKey>& out);
  std::string name_of(std::string_view key) const;
  const Json* find(std::string_view key) const;
  const Json* find_required(std::string_view key);
  void wrong_kind(std::string_view key, std::string_view wanted);
  bool countable() const;

  const Json* object_;
  std::string subject_;
  std::optional<Error> error_;
  std::map<std::string, std::string, std::less<>> aliases_;
  std::map<std::string, int64_t, std::less<>> supposed_;
  std::map<std::string, int64_t, std::less<>> sizes_;  // that positive() found
  std::unique_ptr<ReadKeys> own_;                      // of the outermost object
  ReadKeys* read_;
};

}  // namespace tenon
