// Rows that are reduced and then used again (softmax, layer norm) become one kernel: a block for each row.
//
// Where an elementwise value depends on a reduction over its own minor dimension, repeated along that dimension again,
// everything between - from the root backwards, as far as nobody else needs it - is one fusion of kind kCustom that is
// computed block by block. Rows of 32 to 16384 elements; at most 100 instructions.
#include "compiler/pass/pass.h"
#include "compiler/passes/fusion/fuse.h"

namespace kiln {
namespace {

constexpr int64_t kShortestRow = 32, kLongestRow = 16384;
constexpr size_t kMostMembers = 100;

// How values of one region look: whole arrays, or one value a row.
class Region {
 public:
  explicit Region(const Shape& whole) : whole_(whole), rows_(whole.dims().begin(), whole.dims().end() - 1) {}

  bool Whole(const Shape& s) const { return s.IsArray() && s.dims() == whole_.dims() && s.HasDefaultLayout(); }
  bool Row(const Shape& s) const { return s.IsArray() && s.dims() == rows_ && s.HasDefaultLayout(); }

  bool RowReduce(const Instruction* i) const {
    return i->Is(Opcode::Reduce) && i->operand_count() == 2 && Row(i->shape()) && Whole(i->operand(0)->shape()) &&
           *i->attrs().dimensions == Ints{whole_.rank() - 1} && i->operand(1)->Is(Opcode::Constant) && Plain(i);
  }
  // A value a row, repeated along the row.
  bool RowBroadcast(const Instruction* i) const {
    if (!i->Is(Opcode::Broadcast) || !Whole(i->shape()) || !Row(i->operand(0)->shape())) return false;
    const Ints& dims = *i->attrs().dimensions;
    for (size_t d = 0; d < dims.size(); ++d)
      if (dims[d] != static_cast<int64_t>(d)) return false;
    return true;
  }
  bool Takes(const Instruction* i) const {
    if (!i->control_predecessors().empty() || !i->control_successors().empty()) return false;
    if (i->IsElementwise()) return Whole(i->shape()) || Row(i->shape());
    if (i->Is(Opcode::Constant)) return i->shape().rank() == 0;
    if (i->Is(Opcode::Broadcast)) return Whole(i->shape()) || Row(i->shape());
    return RowReduce(i);
  }

 private:
  static bool Plain(const Instruction* reduce) {
    const Instruction* r = (*reduce->attrs().to_apply)->root();
    return r->HasTrait(Commutative) && r->operand(0)->Is(Opcode::Parameter) && r->operand(1)->Is(Opcode::Parameter) &&
           r->operand(0) != r->operand(1);
  }
  const Shape& whole_;
  Ints rows_;
};

// What the region that ends in `root` holds, or nothing if no reduction comes back to its row there.
absl::flat_hash_set<const Instruction*> RegionOf(Instruction* root) {
  const Region region(root->shape());
  absl::flat_hash_set<const Instruction*> members;
  if (!region.Takes(root) || !root->IsElementwise()) return members;
  members.insert(root);
  bool returns = false;
  std::vector<Instruction*> order = root->parent()->PostOrder();
  for (size_t k = order.size(); k-- > 0;) {
    const Instruction* i = order[k];
    if (i == root || i->users().empty() || i->IsRoot() || !region.Takes(i) || members.size() >= kMostMembers) continue;
    bool inside = true;
    for (const Instruction* u : i->users()) inside = inside && members.contains(u);
    if (inside) members.insert(i);
  }
  absl::flat_hash_set<const Instruction*> from_reduce;
  for (const Instruction* i : order) {
    if (!members.contains(i)) continue;
    bool depends = region.RowReduce(i);
    for (const Instruction* o : i->operands()) depends = depends || from_reduce.contains(o);
    if (!depends) continue;
    from_reduce.insert(i);
    returns = returns || region.RowBroadcast(i);
  }
  // Arrays that are read but lie otherwise cannot be walked row by row.
  for (const Instruction* i : members)
    for (const Instruction* o : i->operands())
      if (!members.contains(o) && (!o->shape().IsArray() || !o->shape().HasDefaultLayout())) returns = false;
  if (!returns) members.clear();
  return members;
}

}  // namespace

absl::StatusOr<bool> TritonSoftmaxRewriter(Module& m, PassContext& ctx) {
  bool changed = false;
  for (Computation* c : ControlComputations(m)) {
    for (bool again = true; again;) {
      again = false;
      std::vector<Instruction*> order = c->PostOrder();
      for (size_t k = order.size(); k-- > 0 && !again;) {
        Instruction* i = order[k];
        const Shape& s = i->shape();
        if (!i->IsElementwise() || !s.IsArray() || s.rank() < 1 || s.HasDynamic() || !s.HasDefaultLayout() ||
            s.dims().back() < kShortestRow || s.dims().back() > kLongestRow)
          continue;
        const auto members = RegionOf(i);
        if (members.empty() || !ctx.Take()) continue;
        Instruction* fusion = FuseMembers(i, members, "kCustom");
        fusion->mutable_attrs().backend_config = "{\"fusion_backend_config\":{\"kind\":\"block_level\"}}";
        again = changed = true;
      }
    }
  }
  return changed;
}

}  // namespace kiln
