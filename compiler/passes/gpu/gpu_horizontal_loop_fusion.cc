// Independent fusions run as one kernel, each in blocks of its own: a launch for all of them.
//
// Fusions are grouped by how many kernels run before them, and then by how many run after (kernel_depths.h), and whole
// groups become one fusion with several results.
// Updates of parts of arrays join too, where nobody else needs the old array later: each works in its operand's memory.
// What runs earlier or later than it must keeps arrays in memory: beyond kSmallBytes only what can hardly wait joins.
// Cost: linear in the instructions.
#include <algorithm>
#include <map>
#include <tuple>

#include "compiler/pass/pass.h"
#include "compiler/passes/fusion/fuse.h"
#include "compiler/passes/gpu/kernel_depths.h"
#include "compiler/passes/simplify/inline_body.h"

namespace kiln {
namespace {

constexpr size_t kMostOperands = 160, kMostResults = 160;
constexpr int64_t kMostInstructions = 1200, kMostTurns = 4, kSmallBytes = 256 << 10, kLittleSlack = 2;

// Roots that work in the array that they update.
bool IsUpdate(const Instruction* r) { return r->Is(Opcode::DynamicUpdateSlice) || r->Is(Opcode::Scatter); }

// The parameter that update `r`, a result of a fused computation, overwrites and nothing else there reads; null if
// there is none.
const Instruction* UpdatedParameter(const Instruction* r) {
  if (r->operands()[r->Is(Opcode::Scatter) ? 2 : 1]->shape().ElementCount() == 0) return nullptr;
  const Instruction* v = r->operand(0);
  for (; v->users().size() == 1; v = v->operand(0)) {
    if (v->Is(Opcode::Parameter)) return v;
    if (!v->Is(Opcode::Bitcast)) break;
  }
  return nullptr;
}

// The array that result `r` of `fusion` overwrites, if it updates one.
const Instruction* UpdatedArray(const Instruction* fusion, const Instruction* r) {
  if (!IsUpdate(r)) return nullptr;
  return WithoutBitcasts(fusion->operand(*UpdatedParameter(r)->attrs().parameter_number));
}

// Roots whose kernels take any number of blocks: loops over elements, reductions, running ones too, updates of a part
// of an array.
bool RootJoins(const Instruction* root) {
  if (!root->shape().IsArray() || root->shape().HasDynamic() || root->shape().ElementCount() == 0) return false;
  if (root->IsElementwise()) return true;
  switch (root->opcode()) {
    case Opcode::Bitcast:
    case Opcode::BitcastConvert:
    case Opcode::Broadcast:
    case Opcode::Concatenate:
    case Opcode::DynamicSlice:
    case Opcode::Gather:
    case Opcode::Iota:
    case Opcode::Pad:
    case Opcode::Reduce:
    case Opcode::ReduceWindow:
    case Opcode::Reshape:
    case Opcode::Reverse:
    case Opcode::Slice:
    case Opcode::Transpose:
      return true;
    case Opcode::Scatter:  // of large arrays, such as gradients of embeddings, one lives at a time
      return UpdatedParameter(root) != nullptr && root->shape().ByteSize() <= kSmallBytes;
    case Opcode::DynamicUpdateSlice:
      return UpdatedParameter(root) != nullptr;
    default:
      return false;
  }
}

std::vector<Instruction*> ResultsOf(const Computation* f) {
  return f->root()->Is(Opcode::Tuple) ? f->root()->operands() : std::vector<Instruction*>{f->root()};
}

bool Joins(const Instruction* i) {
  if (!i->Is(Opcode::Fusion) || IsCustomFusion(i) || i->users().empty() || !i->control_predecessors().empty() ||
      !i->control_successors().empty())
    return false;
  const std::vector<Instruction*> results = ResultsOf(*i->attrs().calls);
  return std::all_of(results.begin(), results.end(), RootJoins);
}

bool Turns(const Instruction* fusion) {
  for (const auto& i : (*fusion->attrs().calls)->instructions())
    if (i->Is(Opcode::Transpose)) return true;
  return false;
}

// Arrays that live only because somebody will read them; what an update of a part overwrites lives anyway.
int64_t HeldOperandBytes(const Instruction* fusion) {
  int64_t bytes = 0;
  for (const Instruction* o : fusion->operands())
    if (o->shape().IsArray() && !o->Is(Opcode::Parameter) && !o->Is(Opcode::Constant)) bytes += o->shape().ByteSize();
  for (const Instruction* r : ResultsOf(*fusion->attrs().calls))
    if (r->Is(Opcode::DynamicUpdateSlice)) bytes -= r->shape().ByteSize();
  return bytes;
}
int64_t HeldResultBytes(const Instruction* fusion) {
  int64_t bytes = 0;
  for (const Instruction* r : ResultsOf(*fusion->attrs().calls))
    if (!r->Is(Opcode::DynamicUpdateSlice)) bytes += r->shape().ByteSize();
  return bytes;
}

// Whether every other reader of `array`, which `fusion` updates, can run before a kernel that `fusion` is a part of:
// none needs a result of what joins it.
bool ReadersRunBefore(const Instruction* array, const Instruction* fusion, const KernelDepths& depths,
                      bool from_arguments) {
  if (array->IsRoot()) return false;
  if (array->Is(Opcode::GetTupleElement))
    for (const Instruction* u : array->operand(0)->users())
      if (u != array && (!u->Is(Opcode::GetTupleElement) || *u->attrs().tuple_index == *array->attrs().tuple_index))
        return false;
  std::vector<const Instruction*> views = {array};
  for (size_t k = 0; k < views.size(); ++k)
    for (const Instruction* u : views[k]->users()) {
      if (u->IsRoot() && u != fusion) return false;
      if (u->Is(Opcode::Bitcast)) {
        views.push_back(u);
      } else if (u != fusion) {
        const bool before = from_arguments ? depths.before.at(u) <= depths.before.at(fusion)
                                           : depths.after.at(u) >= depths.after.at(fusion);
        if (!IsKernel(u) || !before) return false;
      }
    }
  return std::count_if(fusion->operands().begin(), fusion->operands().end(),
                       [&](const Instruction* o) { return WithoutBitcasts(o) == array; }) == 1;
}

// Whether `kernel` writes its result into `array`.
bool Overwrites(const Instruction* kernel, const Instruction* array) {
  if (!kernel->Is(Opcode::Fusion)) return false;
  for (const Instruction* r : ResultsOf(*kernel->attrs().calls)) {
    const int64_t arrays = r->Is(Opcode::DynamicUpdateSlice) ? 1 : r->Is(Opcode::Scatter) ? r->operand_count() / 2 : 0;
    for (int64_t k = 0; k < arrays; ++k) {
      const Instruction* v = WithoutBitcasts(r->operand(k));
      if (v->Is(Opcode::Parameter) && WithoutBitcasts(kernel->operand(*v->attrs().parameter_number)) == array)
        return true;
    }
  }
  return false;
}

// Whether what overwrites the arrays that `fusion` reads can run behind a kernel that `fusion` is a part of: nothing
// that joins it needs the new ones.
bool UpdatesRunAfter(const Instruction* fusion, const KernelDepths& depths, bool from_arguments) {
  for (const Instruction* o : fusion->operands()) {
    std::vector<const Instruction*> views = {WithoutBitcasts(o)};
    for (size_t k = 0; k < views.size(); ++k)
      for (const Instruction* u : views[k]->users()) {
        if (u->Is(Opcode::Bitcast)) views.push_back(u);
        const bool after = from_arguments ? depths.before.at(u) >= depths.before.at(fusion)
                                          : depths.after.at(u) <= depths.after.at(fusion);
        if (u != fusion && !after && Overwrites(u, views[0])) return false;
      }
  }
  return true;
}

// One fusion with all the results of `group`, in the order of the group.
void Merge(const std::vector<Instruction*>& group) {
  Computation* c = group[0]->parent();
  Computation* f = c->module()->AddComputation("fused_computation");
  std::vector<Instruction*> operands, roots;
  std::vector<Shape> shapes;
  absl::flat_hash_map<const Instruction*, Instruction*> parameters;
  bool reduces = false;
  for (Instruction* i : group) {
    std::vector<Instruction*> arguments;
    for (Instruction* o : i->operands()) {
      Instruction*& p = parameters[o];
      if (!p) {
        p = f->AddParameter(static_cast<int64_t>(operands.size()), o->shape(), "param");
        operands.push_back(o);
      }
      arguments.push_back(p);
    }
    Instruction* root = InlineBody(f, *i->attrs().calls, arguments, i);
    for (Instruction* r : root->Is(Opcode::Tuple) ? root->operands() : std::vector<Instruction*>{root}) {
      roots.push_back(r);
      shapes.push_back(r->shape());
      reduces = reduces || r->Is(Opcode::Reduce);
    }
    if (root->Is(Opcode::Tuple)) f->Remove(root);
  }
  f->set_root(f->Add(Opcode::Tuple, Shape::Tuple(shapes), roots));
  Instruction* fusion = c->Add(Opcode::Fusion, f->root()->shape(), operands, "fusion");
  fusion->set_loc(group[0]->loc());
  fusion->mutable_attrs().calls = f;
  fusion->mutable_attrs().fusion_kind = reduces ? FusionKind::kInput : FusionKind::kLoop;
  int64_t next = 0;
  const auto element = [&] {
    Instruction* e = c->Add(Opcode::GetTupleElement, shapes[static_cast<size_t>(next)], {fusion});
    e->mutable_attrs().tuple_index = next++;
    return e;
  };
  for (Instruction* i : group) {
    if (i->shape().IsArray()) {
      i->ReplaceAllUsesWith(element());
    } else {
      std::vector<Instruction*> elements;
      for (size_t k = 0; k < i->shape().tuple().size(); ++k) elements.push_back(element());
      for (Instruction* u : std::vector<Instruction*>(i->users())) {
        if (!u->Is(Opcode::GetTupleElement)) continue;
        u->ReplaceAllUsesWith(elements[static_cast<size_t>(*u->attrs().tuple_index)]);
        c->Remove(u);
      }
      if (!i->users().empty() || i->IsRoot()) i->ReplaceAllUsesWith(c->Add(Opcode::Tuple, i->shape(), elements));
    }
    c->Remove(i);
  }
}

// Collects fusions until a kernel is full, and merges them.
class Group {
 public:
  explicit Group(PassContext& ctx) : ctx_(ctx) {}

  void Add(Instruction* i) {
    absl::flat_hash_set<const Instruction*> operands = operands_;
    operands.insert(i->operands().begin(), i->operands().end());
    const Computation* f = *i->attrs().calls;
    const size_t results = results_ + ResultsOf(f).size();
    const int64_t instructions = instructions_ + f->instruction_count(), turns = turns_ + Turns(i);
    const bool fits = operands.size() <= kMostOperands && results <= kMostResults &&
                      instructions <= kMostInstructions && turns <= kMostTurns && KeepsApart(i);
    if (!fits) {
      Close();
      operands = {i->operands().begin(), i->operands().end()};
    }
    for (const Instruction* o : i->operands()) read_.insert(WithoutBitcasts(o));
    for (const Instruction* r : ResultsOf(f))
      if (const Instruction* array = UpdatedArray(i, r)) updated_.insert(array);
    members_.push_back(i);
    operands_ = std::move(operands);
    results_ += ResultsOf(f).size();
    instructions_ += f->instruction_count();
    turns_ += Turns(i);
  }

  void Close() {
    if (members_.size() > 1 && ctx_.Take()) {
      Merge(members_);
      changed_ = true;
    }
    members_.clear();
    operands_.clear();
    read_.clear();
    updated_.clear();
    results_ = 0;
    instructions_ = turns_ = 0;
  }
  bool changed() const { return changed_; }

 private:
  // What one member overwrites no other reads: their blocks run in any order.
  bool KeepsApart(const Instruction* i) const {
    for (const Instruction* o : i->operands())
      if (updated_.contains(WithoutBitcasts(o))) return false;
    for (const Instruction* r : ResultsOf(*i->attrs().calls))
      if (const Instruction* array = UpdatedArray(i, r); array && read_.contains(array)) return false;
    return true;
  }

  PassContext& ctx_;
  std::vector<Instruction*> members_;
  absl::flat_hash_set<const Instruction*> operands_, read_, updated_;
  size_t results_ = 0;
  int64_t instructions_ = 0, turns_ = 0;
  bool changed_ = false;
};

// Loops over equally many elements lie side by side, so that they become one loop.
auto FormOf(const Instruction* i) {
  const Instruction* r = ResultsOf(*i->attrs().calls)[0];
  const bool reduces = r->Is(Opcode::Reduce);
  const Shape& s = reduces ? r->operand(0)->shape() : r->shape();
  return std::tuple(reduces, s.dims(), reduces ? *r->attrs().dimensions : Ints());
}

bool MergeRound(Computation* c, PassContext& ctx, bool from_arguments) {
  const KernelDepths depths(c);
  std::map<int64_t, std::vector<Instruction*>> groups;
  for (Instruction* i : c->PostOrder()) {
    if (!Joins(i)) continue;
    const std::vector<Instruction*> results = ResultsOf(*i->attrs().calls);
    if (!std::all_of(results.begin(), results.end(),
                     [&](const Instruction* r) {
                       const Instruction* array = UpdatedArray(i, r);
                       return !array || ReadersRunBefore(array, i, depths, from_arguments);
                     }) ||
        !UpdatesRunAfter(i, depths, from_arguments))
      continue;
    const int64_t held = from_arguments ? HeldResultBytes(i) : HeldOperandBytes(i);
    if (held > kSmallBytes && depths.Slack(i) > kLittleSlack) continue;
    groups[from_arguments ? depths.before.at(i) : depths.after.at(i)].push_back(i);
  }
  bool changed = false;
  for (auto& [depth, members] : groups) {
    std::stable_sort(members.begin(), members.end(),
                     [](const Instruction* a, const Instruction* b) { return FormOf(a) < FormOf(b); });
    Group group(ctx);
    for (Instruction* i : members) group.Add(i);
    group.Close();
    changed = changed || group.changed();
  }
  return changed;
}

}  // namespace

absl::StatusOr<bool> GpuHorizontalLoopFusion(Module& m, PassContext& ctx) {
  bool changed = false;
  for (Computation* c : ControlComputations(m))
    for (const bool from_arguments : {true, false}) changed = MergeRound(c, ctx, from_arguments) || changed;
  return changed;
}

}  // namespace kiln
