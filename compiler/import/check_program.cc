#include "compiler/import/check_program.h"

#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "compiler/base/status.h"
#include "compiler/import/symbols.h"

namespace kiln::mlir {
namespace {

bool IsReturn(const Op& op) { return absl::EndsWith(op.name, ".return"); }

// Values that one name stands for: the results of a group, or a block's argument.
struct Group {
  const Type* types = nullptr;
  size_t count = 0;
};

class Checker {
 public:
  Checker(const Program& program, const std::string& file) : program_(program), file_(file) {}

  absl::Status Run() {
    for (const Function& f : program_.functions)
      if (!functions_.insert({f.name, &f}).second)
        return InvalidArgument(file_, ":", f.loc.line, ":", f.loc.column, ": error: function @", f.name,
                               " is defined twice");
    if (!program_.functions.empty() && !program_.top_level.empty())
      return Fail(*program_.top_level[0], "this operation is not supported outside of a function",
                  absl::StatusCode::kUnimplemented);
    for (const Function& f : program_.functions) {
      function_ = &f;
      RETURN_IF_ERROR(CheckRegion(f.body, nullptr));
      if (f.body.ops.empty() || !IsReturn(*f.body.ops.back()))
        return InvalidArgument(file_, ":", f.loc.line, ":", f.loc.column, ": error: @", f.name,
                               " does not end in a return");
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Fail(const Op& op, absl::string_view why,
                    absl::StatusCode code = absl::StatusCode::kInvalidArgument) const {
    return absl::Status(code,
                        absl::StrCat(file_, ":", op.loc.line, ":", op.loc.column, ": error: ", op.name, ": ", why));
  }

  // `parent` is null for a function's body.
  absl::Status CheckRegion(const Region& r, const Op* parent) {
    const size_t outer = undo_.size();
    const absl::Cleanup leave = [&] {
      for (; undo_.size() > outer; undo_.pop_back()) scope_[undo_.back().first] = undo_.back().second;
    };
    for (const BlockArgument& a : r.arguments) Define(a.name, {&a.type, 1});
    for (size_t k = 0; k < r.ops.size(); ++k) {
      const Op& op = *r.ops[k];
      if (IsReturn(op) && k + 1 < r.ops.size()) return Fail(op, "an operation follows a return");
      RETURN_IF_ERROR(CheckOp(op, parent));
    }
    if (parent && (r.ops.empty() || !IsReturn(*r.ops.back())))
      return Fail(*parent, "a region does not end in a return");
    return absl::OkStatus();
  }

  void Define(absl::string_view name, Group g) {
    Group& slot = scope_[name];
    undo_.push_back({name, slot});
    slot = g;
  }

  absl::StatusOr<const Type*> TypeOf(const Op& op, const std::string& value) const {
    const size_t hash = value.find('#');
    auto it = scope_.find(absl::string_view(value).substr(0, hash));
    if (it == scope_.end() || !it->second.types) return Fail(op, absl::StrCat("value '%", value, "' is not defined"));
    size_t k = 0;
    if (hash != std::string::npos && !absl::SimpleAtoi(value.substr(hash + 1), &k))
      return Fail(op, absl::StrCat("bad result number in '%", value, "'"));
    if (k >= it->second.count) return Fail(op, absl::StrCat("value '%", value, "' has ", it->second.count, " results"));
    return it->second.types + k;
  }

  absl::Status CheckOp(const Op& op, const Op* parent) {
    std::vector<const Type*> operands;
    for (const std::string& o : op.operands) {
      ASSIGN_OR_RETURN(const Type* t, TypeOf(op, o));
      operands.push_back(t);
    }
    if (program_.operand_types_stated) RETURN_IF_ERROR(CheckStated(op, operands));
    if (IsReturn(op)) RETURN_IF_ERROR(CheckReturn(op, parent, operands));
    RETURN_IF_ERROR(CheckSymbols(op, operands));
    if (absl::EndsWith(op.name, ".while"))
      for (const Region& r : op.regions) {
        bool fits = r.arguments.size() == operands.size();
        for (size_t k = 0; fits && k < operands.size(); ++k) fits = SameType(r.arguments[k].type, *operands[k]);
        if (!fits) return Fail(op, "a region does not take the loop's values");
      }
    for (const Region& r : op.regions) RETURN_IF_ERROR(CheckRegion(r, &op));
    size_t next = 0;
    for (const auto& [name, count] : op.results) {
      if (next + count > op.result_types.size())
        return Fail(op,
                    absl::StrCat("more results are named than the ", op.result_types.size(), " that its type states"));
      if (auto it = scope_.find(name); it != scope_.end() && it->second.types)
        return Fail(op, absl::StrCat("value '%", name, "' is defined twice"));
      Define(name, {op.result_types.data() + next, static_cast<size_t>(count)});
      next += count;
    }
    if (!op.results.empty() && next != op.result_types.size())
      return Fail(op, absl::StrCat(next, " results are named, its type states ", op.result_types.size()));
    return absl::OkStatus();
  }

  absl::Status Expect(const Op& op, const std::string& what, const Type& got, const Type& said) const {
    if (SameType(got, said)) return absl::OkStatus();
    return Fail(op, absl::StrCat(what, " is ", got.ToString(false), ", the text says ", said.ToString(false)));
  }

  // The types that the text gives to the operands; pretty forms leave out what follows.
  absl::Status CheckStated(const Op& op, const std::vector<const Type*>& operands) const {
    const std::vector<Type>& said = op.operand_types;
    const size_t n = operands.size();
    const bool of_result = absl::EndsWith(op.name, ".complex") || absl::EndsWith(op.name, ".tuple");
    if (op.has_function_type || IsReturn(op)) {
      if (said.size() != n) return Fail(op, absl::StrCat("has ", n, " operands, its type states ", said.size()));
    } else if (of_result || (said.size() != n && said.size() != 1 && !absl::EndsWith(op.name, ".select"))) {
      return absl::OkStatus();
    }
    for (size_t k = 0; k < n && !said.empty(); ++k)
      RETURN_IF_ERROR(Expect(op, absl::StrCat("operand ", k), *operands[k], said[std::min(k, said.size() - 1)]));
    return absl::OkStatus();
  }

  absl::Status CheckReturn(const Op& op, const Op* parent, const std::vector<const Type*>& operands) const {
    absl::Span<const Type> want;
    std::string of;
    if (!parent) {
      want = function_->result_types;
      of = absl::StrCat("the type of @", function_->name);
    } else if (absl::EndsWith(parent->name, ".if") || absl::EndsWith(parent->name, ".case")) {
      want = parent->result_types;
      of = "the type of the choice";
    } else if (absl::EndsWith(parent->name, ".while") && !parent->regions.back().ops.empty() &&
               &op == parent->regions.back().ops.back().get()) {
      want = parent->result_types;
      of = "the type of the loop";
    } else {
      return absl::OkStatus();
    }
    if (operands.size() != want.size())
      return Fail(op, absl::StrCat("returns ", operands.size(), " values, ", of, " says ", want.size()));
    for (size_t k = 0; k < want.size(); ++k)
      if (!SameType(*operands[k], want[k]))
        return Fail(op, absl::StrCat("value ", k, " is ", operands[k]->ToString(false), ", ", of, " says ",
                                     want[k].ToString(false)));
    return absl::OkStatus();
  }

  absl::Status CheckSymbols(const Op& op, const std::vector<const Type*>& operands) const {
    for (const std::string& name : SymbolsOf(op))
      if (!functions_.contains(name)) return Fail(op, absl::StrCat("function @", name, " is not defined"));
    const std::string callee = CalleeOf(op);
    if (callee.empty()) return absl::OkStatus();
    const Function& f = *functions_.at(callee);
    if (f.body.arguments.size() != operands.size())
      return Fail(op,
                  absl::StrCat("@", callee, " takes ", f.body.arguments.size(), " arguments, not ", operands.size()));
    for (size_t k = 0; k < operands.size(); ++k)
      if (!SameType(*operands[k], f.body.arguments[k].type))
        return Fail(op, absl::StrCat("operand ", k, " is ", operands[k]->ToString(false), ", @", callee, " takes ",
                                     f.body.arguments[k].type.ToString(false)));
    if (op.result_types.size() != f.result_types.size())
      return Fail(op, absl::StrCat("@", callee, " returns ", f.result_types.size(), " values, the text says ",
                                   op.result_types.size()));
    for (size_t k = 0; k < f.result_types.size(); ++k)
      RETURN_IF_ERROR(Expect(op, absl::StrCat("result ", k), f.result_types[k], op.result_types[k]));
    return absl::OkStatus();
  }

  const Program& program_;
  const std::string& file_;
  const Function* function_ = nullptr;
  absl::flat_hash_map<std::string, const Function*> functions_;
  absl::flat_hash_map<absl::string_view, Group> scope_;
  std::vector<std::pair<absl::string_view, Group>> undo_;
};

}  // namespace

absl::Status CheckProgram(const Program& program, const std::string& file) { return Checker(program, file).Run(); }

}  // namespace kiln::mlir
