// The names of one block: which it loads, which it stores, and which variable each of them is. The rules are
// those of jinja2's compiler. Used by jinja_resolve.cc.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja_ast.h"

namespace tenon::jinja {

// The slots of a function: one for each (level of the block, name).
struct FunctionScope {
  FunctionScope* parent = nullptr;
  std::map<std::pair<int, std::string>, int32_t> slots;

  int32_t slot(int level, const std::string& name) {
    return slots.emplace(std::pair(level, name), static_cast<int32_t>(slots.size())).first->second;
  }
};

struct Reference {
  FunctionScope* function = nullptr;
  int32_t slot = -1;
  friend bool operator==(const Reference&, const Reference&) = default;
};

struct SymbolLoad {
  Load::What what;
  Reference target;
  std::string name;
  Reference from;
};

struct Symbols {
  Symbols* parent = nullptr;
  FunctionScope* function = nullptr;
  int level = 0;
  std::map<std::string, Reference> refs;
  std::vector<SymbolLoad> loads;  // in the order in which they were first seen
  std::set<std::string> stores;

  const Reference* find(const std::string& name) const {
    for (const Symbols* s = this; s != nullptr; s = s->parent) {
      if (auto it = s->refs.find(name); it != s->refs.end()) return &it->second;
    }
    return nullptr;
  }

  void set_load(SymbolLoad load) {
    for (auto& old : loads) {
      if (old.target == load.target) {
        old = std::move(load);
        return;
      }
    }
    loads.push_back(std::move(load));
  }

  Reference define(const std::string& name, Load::What what, Reference from = {}) {
    const Reference ref{function, function->slot(level, name)};
    refs[name] = ref;
    set_load({what, ref, name, from});
    return ref;
  }

  void store(const std::string& name) {
    stores.insert(name);
    if (refs.count(name) != 0) return;
    const Reference* outer = parent != nullptr ? parent->find(name) : nullptr;
    if (outer != nullptr) {
      define(name, Load::What::alias, *outer);
    } else {
      define(name, Load::What::unset);
    }
  }

  Reference declare(const std::string& name) {
    stores.insert(name);
    return define(name, Load::What::parameter);
  }

  void load(const std::string& name) {
    if (find(name) == nullptr) define(name, Load::What::resolve);
  }

  // Joins what the branches of an if saw; what only some of them set starts from outside.
  void join(const std::vector<Symbols>& branches) {
    std::set<std::string> fresh;
    for (const Symbols& branch : branches) {
      for (const auto& name : branch.stores) {
        if (stores.count(name) == 0) fresh.insert(name);
      }
    }
    for (const Symbols& branch : branches) {
      for (const auto& [name, ref] : branch.refs) refs[name] = ref;
      for (const auto& load : branch.loads) set_load(load);
      stores.insert(branch.stores.begin(), branch.stores.end());
    }
    for (const auto& name : fresh) {
      const Reference target = *find(name);
      const Reference* outer = parent != nullptr ? parent->find(name) : nullptr;
      if (outer != nullptr) {
        set_load({Load::What::alias, target, name, *outer});
      } else {
        set_load({Load::What::resolve, target, name, {}});
      }
    }
  }
};

// Adds what expressions and statements load and store to the names of their block. Blocks inside are not
// entered.
void collect(Symbols& symbols, const Expr& expr);
void collect(Symbols& symbols, const Block& block);
// Names that are assigned to; a parameter starts anew in its block.
void collect_target(Symbols& symbols, const Expr& target, bool parameter);

// Which of `names` are read anywhere below, blocks inside included, before something below sets them.
std::set<std::string> names_read(const Block& block, std::set<std::string> names);

}  // namespace tenon::jinja
