// Which variable a name means. jinja2 settles this when it compiles a template: a name that a block sets
// belongs to that block, whatever order things run in, and is copied from the block around it on entry.
// resolve() gives every name a slot by the same rules, and refuses filters and tests that do not exist where
// jinja2 does so early.
#pragma once

#include "text/jinja_ast.h"

namespace tenon::jinja {

void resolve(Tree& tree);

}  // namespace tenon::jinja
