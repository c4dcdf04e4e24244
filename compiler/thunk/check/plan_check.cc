#include "compiler/thunk/check/plan_check.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/thunk/check/access.h"
#include "compiler/thunk/check/memory.h"
#include "compiler/thunk/check/values.h"

namespace kiln {
namespace {

struct ArrayLeaf {
  ShapeIndex index;
  int64_t bytes;
};

std::vector<ArrayLeaf> ArraysOf(const Shape& shape) {
  std::vector<ArrayLeaf> out;
  ForEachLeaf(shape, [&](const ShapeIndex& index, const Shape& s) {
    if (s.IsArray()) out.push_back({index, s.ByteSize()});
  });
  return out;
}

std::string Text(const Slice& s) {
  static const char* const kPlaces[] = {"the arena", "argument ", "result ", "constant ", "the slow arena"};
  const bool one = s.kind == Slice::kTemp || s.kind == Slice::kSlow;
  return absl::StrCat("bytes ", s.offset, " to ", s.offset + s.size, " of ", kPlaces[s.kind],
                      one ? "" : absl::StrCat(s.index));
}

absl::Status Wrong(const Instruction* i, const std::string& what) {
  return ErrorAt(i, absl::StrCat("the plan is wrong: ", what), absl::StatusCode::kInternal);
}

void Collect(const ThunkSequence& steps, std::vector<Slice>* written) {
  for (const Thunk& t : steps) {
    written->insert(written->end(), t.writes.begin(), t.writes.end());
    written->push_back(t.scratch);
    for (const ThunkSequence& n : t.nested) Collect(n, written);
  }
}

// Extents of every piece of memory, and which of it may be written.
class Storages {
 public:
  Storages(const Module& m, const BufferAssignment& b) : temp_(b.temp_bytes()), slow_(b.slow_bytes()) {
    for (const Instruction* p : m.entry()->parameters())
      for (const ArrayLeaf& l : ArraysOf(p->shape())) {
        const bool donated = std::any_of(m.aliases.begin(), m.aliases.end(), [&](const AliasEntry& a) {
          return a.parameter == *p->attrs().parameter_number && a.parameter_index == l.index;
        });
        arguments_.push_back({l.bytes, donated});
      }
    for (const ArrayLeaf& l : ArraysOf(m.entry()->root()->shape())) results_.push_back(l.bytes);
    for (const Instruction* c : b.constants()) constants_.push_back(c->shape().ByteSize());
  }

  absl::Status Check(const Instruction* i, const Slice& s, int64_t bytes, bool write) const {
    if (s.size != bytes) return Wrong(i, absl::StrCat(Text(s), " hold an array of ", bytes, " bytes"));
    if (s.offset < 0 || s.offset + s.size > Extent(s)) return Wrong(i, absl::StrCat(Text(s), " lie outside of it"));
    if (s.size >= 16 && s.offset % 16 != 0) return Wrong(i, absl::StrCat(Text(s), " are not aligned"));
    if (!write || s.size == 0) return absl::OkStatus();
    if (s.kind == Slice::kConstant) return Wrong(i, absl::StrCat("writes a constant (", Text(s), ")"));
    if (s.kind == Slice::kParameter && !arguments_[s.index].donated)
      return Wrong(i, absl::StrCat("writes an argument that is not donated (", Text(s), ")"));
    return absl::OkStatus();
  }

 private:
  int64_t Extent(const Slice& s) const {
    const auto at = [&](const std::vector<int64_t>& v) {
      return s.index >= 0 && s.index < static_cast<int64_t>(v.size()) ? v[s.index] : -1;
    };
    switch (s.kind) {
      case Slice::kTemp:
        return temp_;
      case Slice::kSlow:
        return slow_;
      case Slice::kResult:
        return at(results_);
      case Slice::kConstant:
        return at(constants_);
      default:
        return s.index >= 0 && s.index < static_cast<int64_t>(arguments_.size()) ? arguments_[s.index].bytes : -1;
    }
  }

  struct Argument {
    int64_t bytes;
    bool donated;
  };
  int64_t temp_, slow_;
  std::vector<Argument> arguments_;
  std::vector<int64_t> results_, constants_;
};

class Checker {
 public:
  Checker(const Module& m, const BufferAssignment& b) : m_(m), buffers_(b), storages_(m, b) {}

  absl::Status Run(const ThunkSequence& steps) {
    const ValueFrame frame = values_.EnterEntry(m_);
    SymbolicMemory memory;
    int64_t number = 0;
    for (const Instruction* p : m_.entry()->parameters())
      for (const ArrayLeaf& l : ArraysOf(p->shape()))
        memory.Write({Slice::kParameter, number++, 0, l.bytes}, frame.Of(p, l.index));
    for (size_t k = 0; k < buffers_.constants().size(); ++k) {
      const Instruction* c = buffers_.constants()[k];
      memory.Write({Slice::kConstant, static_cast<int64_t>(k), 0, c->shape().ByteSize()}, values_.OfConstant(c));
    }
    RETURN_IF_ERROR(Sequence(steps, m_.entry(), frame, &memory));
    return Results(frame, memory);
  }

 private:
  // What `i` needs lies at `s`.
  absl::Status Find(const Instruction* i, const char* what, const Slice& s, ValueId value,
                    const SymbolicMemory& memory) const {
    if (memory.Holds(s, value) || unwritten_.contains(value)) return absl::OkStatus();
    return Wrong(i, absl::StrCat(what, " ", values_.Name(value), " should lie in ", Text(s), ", where ",
                                 values_.Name(memory.Sample(s)), " lies"));
  }

  absl::Status Results(const ValueFrame& frame, const SymbolicMemory& memory) const {
    const Instruction* root = m_.entry()->root();
    int64_t number = 0;
    for (const ArrayLeaf& l : ArraysOf(root->shape())) {
      // The caller looks in the result's own memory, or in the argument's that was donated for it.
      Slice place{Slice::kResult, number, 0, l.bytes};
      for (const AliasEntry& a : m_.aliases)
        if (a.output == l.index) place = {Slice::kParameter, ArgumentNumber(a), 0, l.bytes};
      const Slice& given = buffers_.Get(root, l.index);
      if (l.bytes > 0 && !(given == place))
        return Wrong(root, absl::StrCat("result ", number, " is put into ", Text(given), ", not ", Text(place)));
      RETURN_IF_ERROR(Find(root, "at the end", place, frame.Of(root, l.index), memory));
      ++number;
    }
    return absl::OkStatus();
  }

  int64_t ArgumentNumber(const AliasEntry& a) const {
    int64_t number = 0, found = -1;
    for (const Instruction* p : m_.entry()->parameters())
      for (const ArrayLeaf& l : ArraysOf(p->shape())) {
        if (*p->attrs().parameter_number == a.parameter && l.index == a.parameter_index) found = number;
        ++number;
      }
    return found;
  }

  absl::Status Sequence(const ThunkSequence& steps, const Computation* c, const ValueFrame& frame,
                        SymbolicMemory* memory) {
    RETURN_IF_ERROR(Order(steps, c));
    // A call that is given nothing and does not run is memory as it is.
    absl::flat_hash_set<const Instruction*> run;
    for (const Thunk& t : steps) run.insert(t.instruction);
    for (const auto& i : c->instructions())
      if (i->Is(Opcode::CustomCall) && i->operand_count() == 0 && i->shape().IsArray() && !run.contains(i.get()))
        unwritten_.insert(frame.Of(i.get(), {}));
    for (const Thunk& t : steps) {
      if (t.kind == ThunkKind::While)
        RETURN_IF_ERROR(Loop(t, frame, memory));
      else if (t.kind == ThunkKind::Conditional)
        RETURN_IF_ERROR(Branches(t, frame, memory));
      else
        RETURN_IF_ERROR(Step(t, frame, memory));
    }
    return absl::OkStatus();
  }

  // Every step comes after those that its instruction depends on, directly or through what has no step; nothing that
  // may be seen to run is left out or runs twice.
  static absl::Status Order(const ThunkSequence& steps, const Computation* c) {
    absl::flat_hash_map<const Instruction*, int64_t> at, last;
    for (size_t k = 0; k < steps.size(); ++k) {
      const Instruction* i = steps[k].instruction;
      if (i->parent() != c) return Wrong(i, absl::StrCat("it runs in ", c->name()));
      if (!at.insert({i, static_cast<int64_t>(k)}).second) return Wrong(i, "it runs twice");
    }
    for (const Instruction* i : c->PostOrder()) {
      int64_t& mine = last[i];
      mine = -1;
      const auto self = at.find(i);
      for (const auto* list : {&i->operands(), &i->control_predecessors()})
        for (const Instruction* p : *list) {
          mine = std::max(mine, last.at(p));
          if (self != at.end() && last.at(p) >= self->second)
            return Wrong(i, absl::StrCat("it runs before %", steps[last.at(p)].instruction->name(),
                                         ", which it depends on through %", p->name()));
        }
      if (self != at.end()) mine = self->second;
      const bool free = i->Is(Opcode::AddDependency) || i->Is(Opcode::AfterAll) || i->Is(Opcode::Domain);
      if (self == at.end() && i->HasSideEffect() && !free) return Wrong(i, "it has no step");
    }
    return absl::OkStatus();
  }

  absl::Status Step(const Thunk& t, const ValueFrame& frame, SymbolicMemory* memory) {
    const Instruction* i = t.instruction;
    struct Read {
      int64_t operand;
      bool whole;  // not an element of a tuple
    };
    std::vector<Read> reads;
    for (int64_t k = 0; k < i->operand_count(); ++k)
      for (const ArrayLeaf& l : ArraysOf(i->operand(k)->shape())) {
        if (reads.size() == t.reads.size()) return Wrong(i, "it has fewer reads than operands");
        const Slice& s = t.reads[reads.size()];
        RETURN_IF_ERROR(storages_.Check(i, s, l.bytes, false));
        RETURN_IF_ERROR(Find(i, "its operand", s, frame.Of(i->operand(k), l.index), *memory));
        reads.push_back({k, l.index.empty()});
      }
    const std::vector<ArrayLeaf> results = ArraysOf(i->shape());
    if (reads.size() != t.reads.size() || results.size() != t.writes.size())
      return Wrong(i, "its reads and writes are not its operands and results");
    for (size_t o = 0; o < results.size(); ++o) {
      const Slice& w = t.writes[o];
      RETURN_IF_ERROR(storages_.Check(i, w, results[o].bytes, true));
      for (size_t k = 0; k < reads.size(); ++k) {
        if (!Overlap(w, t.reads[k])) continue;
        const bool same = w == t.reads[k] && w.size == t.reads[k].size;
        const bool flat = results[o].index.size() <= 1 && reads[k].whole;
        const int64_t output = results[o].index.empty() ? 0 : results[o].index[0];
        const bool in_place = t.kind == ThunkKind::Kernel || t.kind == ThunkKind::Exchange;
        if (!in_place || !same || !flat || !MayOverwrite(i, reads[k].operand, output))
          return Wrong(i, absl::StrCat("it writes ", Text(w), " while it reads operand ", reads[k].operand, " there"));
      }
      for (size_t other = 0; other < o; ++other)
        if (Overlap(w, t.writes[other])) return Wrong(i, absl::StrCat("two of its results lie in ", Text(w)));
    }
    if (t.scratch.size > 0) {
      RETURN_IF_ERROR(storages_.Check(i, t.scratch, t.scratch.size, true));
      for (const auto* list : {&t.reads, &t.writes})
        for (const Slice& s : *list)
          if (Overlap(s, t.scratch)) return Wrong(i, absl::StrCat("it works in ", Text(t.scratch), ", which it needs"));
      memory->Forget(t.scratch);
    }
    for (size_t o = 0; o < results.size(); ++o) memory->Write(t.writes[o], frame.Of(i, results[o].index));
    return absl::OkStatus();
  }

  absl::Status Loop(const Thunk& t, const ValueFrame& frame, SymbolicMemory* memory) {
    const Instruction* loop = t.instruction;
    const Computation *condition = *loop->attrs().condition, *body = *loop->attrs().body;
    const std::vector<ArrayLeaf> leaves = ArraysOf(loop->shape());
    for (const ArrayLeaf& l : leaves)
      for (const Instruction* p : {condition->parameter(0), body->parameter(0)})
        RETURN_IF_ERROR(
            Find(loop, "its initial", buffers_.Get(p, l.index), frame.Of(loop->operand(0), l.index), *memory));
    // Where an iteration begins, whatever another may have written is unknown, but for the state.
    std::vector<Slice> written;
    for (const ThunkSequence& n : t.nested) Collect(n, &written);
    for (const Slice& s : written) memory->Forget(s);
    const auto state = values_.All(frame, loop);
    for (const ArrayLeaf& l : leaves) memory->Write(buffers_.Get(body->parameter(0), l.index), state.at(l.index));
    const auto expect_state = [&](const char* what, const ValueFrame& f, const Instruction* i,
                                  const SymbolicMemory& now) {
      for (const ArrayLeaf& l : leaves)
        RETURN_IF_ERROR(Find(loop, what, buffers_.Get(body->parameter(0), l.index), f.Of(i, l.index), now));
      return absl::OkStatus();
    };
    const ValueFrame in_condition = values_.Enter(condition, {state});
    RETURN_IF_ERROR(Sequence(t.nested[0], condition, in_condition, memory));
    RETURN_IF_ERROR(Find(loop, "its condition", t.predicate, in_condition.Of(condition->root(), {}), *memory));
    RETURN_IF_ERROR(expect_state("after its condition", frame, loop, *memory));
    const ValueFrame in_body = values_.Enter(body, {state});
    SymbolicMemory again = *memory;
    RETURN_IF_ERROR(Sequence(t.nested[1], body, in_body, &again));
    return expect_state("after an iteration", in_body, body->root(), again);
  }

  absl::Status Branches(const Thunk& t, const ValueFrame& frame, SymbolicMemory* memory) {
    const Instruction* i = t.instruction;
    RETURN_IF_ERROR(Find(i, "its selector", t.predicate, frame.Of(i->operand(0), {}), *memory));
    const std::vector<Computation*> branches = i->called();
    SymbolicMemory after;
    for (size_t b = 0; b < branches.size(); ++b) {
      const ValueFrame inside =
          values_.Enter(branches[b], {values_.All(frame, i->operand(static_cast<int64_t>(b) + 1))});
      SymbolicMemory here = *memory;
      RETURN_IF_ERROR(Sequence(t.nested[b], branches[b], inside, &here));
      for (const ArrayLeaf& l : ArraysOf(i->shape())) {
        const Slice& s = buffers_.Get(i, l.index);
        RETURN_IF_ERROR(Find(i, "after a branch", s, inside.Of(branches[b]->root(), l.index), here));
      }
      for (const ArrayLeaf& l : ArraysOf(i->shape())) here.Write(buffers_.Get(i, l.index), frame.Of(i, l.index));
      if (b == 0)
        after = std::move(here);
      else
        after.Join(here);
    }
    *memory = std::move(after);
    return absl::OkStatus();
  }

  const Module& m_;
  const BufferAssignment& buffers_;
  const Storages storages_;
  ValueNumbers values_;
  absl::flat_hash_set<ValueId> unwritten_;  // that may be whatever memory holds
};

}  // namespace

absl::Status CheckPlan(const Module& m, const BufferAssignment& b, const ThunkSequence& t) {
  return Checker(m, b).Run(t);
}

}  // namespace kiln
