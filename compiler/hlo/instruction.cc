#include "compiler/hlo/instruction.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace kiln {

// Programs have up to millions of them.
static_assert(sizeof(Instruction) <= 600);

int64_t Instruction::OperandIndex(const Instruction* o) const {
  for (size_t i = 0; i < operands_.size(); ++i)
    if (operands_[i] == o) return static_cast<int64_t>(i);
  return -1;
}

const Attributes& Instruction::NoAttributes() {
  static const auto* none = new Attributes;
  return *none;
}

void Instruction::AddUser(Instruction* u) { users_.Add(u); }

void Instruction::RemoveUser(Instruction* u) {
  if (u->OperandIndex(this) >= 0) return;  // still used through another operand
  users_.Remove(u);
}

void Instruction::ReplaceOperand(int64_t i, Instruction* with) {
  Instruction* old = operands_[i];
  if (old == with) return;
  operands_[i] = with;
  old->RemoveUser(this);
  with->AddUser(this);
}

void Instruction::AppendOperand(Instruction* o) {
  operands_.push_back(o);
  o->AddUser(this);
}

void Instruction::RemoveOperand(int64_t i) {
  Instruction* old = operands_[i];
  operands_.erase(operands_.begin() + i);
  old->RemoveUser(this);
}

void Instruction::ReplaceUseWith(Instruction* user, Instruction* with) {
  for (int64_t i = 0; i < user->operand_count(); ++i)
    if (user->operand(i) == this) user->ReplaceOperand(i, with);
}

namespace {
// True if `to` runs after `from` by data or control edges, or is it.
bool Precedes(const Instruction* from, const Instruction* to) {
  std::vector<const Instruction*> work = {from};
  absl::flat_hash_set<const Instruction*> seen;
  while (!work.empty()) {
    const Instruction* i = work.back();
    work.pop_back();
    if (i == to) return true;
    if (!seen.insert(i).second) continue;
    work.insert(work.end(), i->users().begin(), i->users().end());
    work.insert(work.end(), i->control_successors().begin(), i->control_successors().end());
  }
  return false;
}
}  // namespace

void Instruction::ReplaceAllUsesWith(Instruction* with) {
  const std::vector<Instruction*> users = users_.list();
  for (Instruction* u : users)
    if (u != with) ReplaceUseWith(u, with);
  if (parent_->root_ == this) parent_->root_ = with;
  if (with == this || with->parent_ != parent_) return;
  // Order holds for what takes the place; where that is computed before a predecessor, for what uses the value, and the
  // place is still taken after what the predecessor waited for.
  std::vector<Instruction*> before = control_preds_;
  absl::flat_hash_set<const Instruction*> seen(before.begin(), before.end());
  while (!before.empty()) {
    Instruction* p = before.back();
    before.pop_back();
    if (!Precedes(with, p)) {
      p->AddControlDependencyTo(with);
      continue;
    }
    for (Instruction* u : users)
      if (u != with && !Precedes(u, p)) p->AddControlDependencyTo(u);
    for (Instruction* earlier : p->control_preds_)
      if (seen.insert(earlier).second) before.push_back(earlier);
  }
  for (Instruction* s : std::vector<Instruction*>(control_succs_))
    if (!Precedes(s, with)) with->AddControlDependencyTo(s);
}

void Instruction::AddControlDependencyTo(Instruction* s) {
  if (std::find(control_succs_.begin(), control_succs_.end(), s) != control_succs_.end()) return;
  control_succs_.push_back(s);
  s->control_preds_.push_back(this);
}

void Instruction::DropControlDependencies() {
  auto erase = [](std::vector<Instruction*>& v, Instruction* x) {
    v.erase(std::remove(v.begin(), v.end(), x), v.end());
  };
  for (Instruction* p : control_preds_) erase(p->control_succs_, this);
  for (Instruction* s : control_succs_) erase(s->control_preds_, this);
  control_preds_.clear();
  control_succs_.clear();
}

bool Instruction::IsRoot() const { return parent_->root() == this; }

namespace {
bool IsSideEffect(const Instruction* i) {
  if (i->HasTrait(SideEffect) || i->HasTrait(Collective)) return true;
  return i->Is(Opcode::CustomCall) && i->attrs().custom_call_has_side_effect.value_or(false);
}
}  // namespace

bool Instruction::HasSideEffect() const {
  if (IsSideEffect(this)) return true;
  // Each computation once, however often and deeply it is called.
  std::vector<Computation*> work = called();
  absl::flat_hash_set<const Computation*> seen(work.begin(), work.end());
  while (!work.empty()) {
    const Computation* c = work.back();
    work.pop_back();
    for (const auto& i : c->instructions()) {
      if (IsSideEffect(i.get())) return true;
      for (Computation* callee : i->called())
        if (seen.insert(callee).second) work.push_back(callee);
    }
  }
  return false;
}

std::vector<Computation*> Instruction::called() const {
  std::vector<Computation*> out;
  if (IsElementwise()) return out;
  const_cast<Instruction*>(this)->MapCalled([&](Computation* c) {
    out.push_back(c);
    return c;
  });
  return out;
}

namespace {

// Where each instruction of a list stands. Ids grow with creation and lie close together within a computation, so that
// a table by id is small; one that would not be is a map.
class Places {
 public:
  explicit Places(const InstructionList& list) {
    int64_t last = 0;
    for (const auto& i : list) {
      first_ = std::min(first_, i->id());
      last = std::max(last, i->id());
    }
    const bool dense = !list.empty() && last - first_ < 64 * static_cast<int64_t>(list.size()) + 1024;
    if (dense) table_.resize(static_cast<size_t>(last - first_) + 1);
    size_t k = 0;
    for (const auto& i : list) {
      if (dense)
        table_[static_cast<size_t>(i->id() - first_)] = static_cast<uint32_t>(k);
      else
        map_[i->id()] = k;
      ++k;
    }
  }
  size_t Of(const Instruction* i) const {
    return map_.empty() ? table_[static_cast<size_t>(i->id() - first_)] : map_.at(i->id());
  }

 private:
  int64_t first_ = INT64_MAX;
  std::vector<uint32_t> table_;
  absl::flat_hash_map<int64_t, size_t> map_;
};

}  // namespace

std::vector<Instruction*> Computation::PostOrder() const {
  std::vector<Instruction*> order;
  order.reserve(instructions_.size());
  // Mostly the list is one already: ids grow along it, and operands have smaller ones than their users.
  int64_t last = -1;
  const auto in_order = [&](const Instruction* i) {
    const auto before = [&](const Instruction* o) { return o->id() < i->id(); };
    const bool next = i->id() > last && std::all_of(i->operands_.begin(), i->operands_.end(), before) &&
                      std::all_of(i->control_preds_.begin(), i->control_preds_.end(), before);
    last = i->id();
    return next;
  };
  if (std::all_of(instructions_.begin(), instructions_.end(), [&](const auto& i) { return in_order(i.get()); })) {
    for (const auto& i : instructions_) order.push_back(i.get());
    return order;
  }
  const Places places(instructions_);
  std::vector<bool> seen(instructions_.size(), false);
  std::vector<std::pair<Instruction*, size_t>> stack;
  size_t place = 0;
  for (const auto& start : instructions_) {
    const size_t k = place++;
    if (seen[k]) continue;
    stack.push_back({start.get(), 0});
    seen[k] = true;
    while (!stack.empty()) {
      auto& [i, next] = stack.back();
      const size_t preds = i->control_preds_.size();
      if (next < preds + i->operands_.size()) {
        Instruction* o = next < preds ? i->control_preds_[next] : i->operands_[next - preds];
        ++next;
        const size_t at = places.Of(o);
        if (seen[at]) continue;
        seen[at] = true;
        stack.push_back({o, 0});
      } else {
        order.push_back(i);
        stack.pop_back();
      }
    }
  }
  return order;
}

Instruction* Computation::Add(Opcode op, Shape shape, std::vector<Instruction*> operands, absl::string_view name) {
  auto* i = new Instruction(op, std::move(shape));
  i->parent_ = this;
  i->id_ = module_->next_id_++;
  i->name_ = module_->UniqueName(name.empty() ? TextOf(op) : name);
  i->operands_ = std::move(operands);
  for (Instruction* o : i->operands_) o->AddUser(i);
  instructions_.Append(std::unique_ptr<Instruction>(i));
  return i;
}

std::vector<Instruction*> Computation::AddedSince(int64_t id) const {
  std::vector<Instruction*> out;
  for (auto it = instructions_.rbegin(); it != instructions_.rend() && (*it)->id_ >= id; ++it) out.push_back(it->get());
  std::reverse(out.begin(), out.end());
  return out;
}

Instruction* Computation::AddParameter(int64_t number, Shape shape, absl::string_view name) {
  Instruction* p = Add(Opcode::Parameter, std::move(shape), {}, name);
  p->mutable_attrs().parameter_number = number;
  if (static_cast<int64_t>(params_.size()) <= number) params_.resize(number + 1, nullptr);
  params_[number] = p;
  return p;
}

Instruction* Computation::AddConstant(Literal value, absl::string_view name) {
  Instruction* c = Add(Opcode::Constant, value.shape(), {}, name.empty() ? "constant" : name);
  c->literal_ = std::move(value);
  return c;
}

Instruction* Computation::AddClone(const Instruction* from, Shape shape, std::vector<Instruction*> operands) {
  Instruction* i = Add(from->opcode(), std::move(shape), std::move(operands), from->name());
  if (from->attrs_) i->attrs_ = std::make_unique<Attributes>(*from->attrs_);
  // Tiles of an array say nothing of one with other dimensions.
  if (from->attrs().sharding && !i->shape().CompatibleIgnoringType(from->shape())) i->attrs_->sharding = std::nullopt;
  i->literal_ = from->literal_;
  i->loc_ = from->loc_;
  if (i->opcode_ == Opcode::Parameter) {
    const int64_t n = *i->attrs_->parameter_number;
    if (static_cast<int64_t>(params_.size()) <= n) params_.resize(n + 1, nullptr);
    params_[n] = i;
  }
  return i;
}

void Computation::Remove(Instruction* x) {
  KILN_CHECK(x->users().empty());
  // What ran before it still runs before what ran after it.
  for (Instruction* p : std::vector<Instruction*>(x->control_preds_))
    for (Instruction* s : x->control_succs_) p->AddControlDependencyTo(s);
  x->DropControlDependencies();
  const std::vector<Instruction*> ops = std::move(x->operands_);
  x->operands_.clear();
  for (Instruction* o : ops) o->RemoveUser(x);
  module_->ReleaseName(x->name_);
  if (x->opcode_ == Opcode::Parameter) params_[*x->attrs_->parameter_number] = nullptr;
  instructions_.Remove(x);
}

void Computation::RemoveParameter(int64_t number) {
  Remove(params_[number]);
  params_.erase(params_.begin() + number);
  for (size_t i = number; i < params_.size(); ++i) params_[i]->attrs_->parameter_number = static_cast<int64_t>(i);
}

void Computation::Reorder(const std::vector<Instruction*>& order) { instructions_.Assign(order); }

std::string NameInText(absl::string_view name) {
  std::string out(name);
  for (char& c : out)
    if (!absl::ascii_isalnum(c) && absl::string_view("_.-:$@/").find(c) == absl::string_view::npos) c = '_';
  return out.empty() ? "_" : out;
}

void Instruction::Rename(const std::string& wanted) {
  Module* m = parent_->module();
  m->names_.erase(name_);
  const std::string base = NameInText(wanted);
  name_ = base;
  for (int64_t n = 2; !m->names_.insert(name_).second; ++n) name_ = absl::StrCat(base, "_", n);
}

std::string Module::UniqueName(absl::string_view hint) {
  std::string base = NameInText(hint);
  if (names_.insert(base).second) return base;
  // "add.7" asked for again becomes "add.<next>", not "add.7.1".
  if (const size_t dot = base.rfind('.'); dot != std::string::npos && dot + 1 < base.size() &&
                                          base.find_first_not_of("0123456789", dot + 1) == std::string::npos) {
    base.resize(dot);
  }
  int64_t& n = next_suffix_[base];
  for (;;) {
    std::string name = absl::StrCat(base, ".", ++n);
    if (names_.insert(name).second) return name;
  }
}

Computation* Module::AddComputation(absl::string_view name) {
  auto c = std::make_unique<Computation>();
  c->module_ = this;
  c->name_ = UniqueName(name);
  computations_.push_back(std::move(c));
  return computations_.back().get();
}

void Module::RemoveComputation(Computation* c) {
  for (const auto& i : c->instructions_) names_.erase(i->name_);
  names_.erase(c->name_);
  computations_.erase(
      std::find_if(computations_.begin(), computations_.end(), [&](const auto& p) { return p.get() == c; }));
}

std::vector<Computation*> Module::PostOrder() const {
  std::vector<Computation*> order;
  absl::flat_hash_set<const Computation*> seen = {entry_};
  // With a stack of its own: before a module is verified, calls nest as deep as its file has them.
  struct Frame {
    Computation* c;
    std::vector<Computation*> callees;
    size_t next = 0;
  };
  const auto frame = [](Computation* c) {
    Frame f{c, {}};
    for (const auto& i : c->instructions_)
      for (Computation* callee : i->called()) f.callees.push_back(callee);
    return f;
  };
  std::vector<Frame> stack;
  stack.push_back(frame(entry_));
  while (!stack.empty()) {
    Frame& f = stack.back();
    if (f.next == f.callees.size()) {
      order.push_back(f.c);
      stack.pop_back();
    } else if (Computation* callee = f.callees[f.next++]; seen.insert(callee).second) {
      stack.push_back(frame(callee));
    }
  }
  return order;
}

bool Module::RemoveUnreachableComputations() {
  const auto order = PostOrder();
  absl::flat_hash_set<const Computation*> live(order.begin(), order.end());
  std::vector<Computation*> dead;
  for (const auto& c : computations_)
    if (!live.contains(c.get())) dead.push_back(c.get());
  for (Computation* c : dead) RemoveComputation(c);
  return !dead.empty();
}

int64_t Module::instruction_count() const {
  int64_t n = 0;
  for (const auto& c : computations_) n += c->instruction_count();
  return n;
}

void Computation::CopyFrom(const Computation& from, const std::vector<const Instruction*>& order,
                           const std::function<Computation*(Computation*)>& callee) {
  absl::flat_hash_map<const Instruction*, Instruction*> map;
  for (const Instruction* i : order) {
    std::vector<Instruction*> operands;
    operands.reserve(i->operands().size());
    for (const Instruction* o : i->operands()) operands.push_back(map.at(o));
    Instruction* n = AddClone(i, i->shape(), std::move(operands));
    n->MapCalled(callee);
    map[i] = n;
  }
  for (const Instruction* i : order)
    for (const Instruction* s : i->control_successors()) map.at(i)->AddControlDependencyTo(map.at(s));
  root_ = map.at(from.root());
  execution_thread_ = from.execution_thread();
}

namespace {
// The order of the list where operands come first there, or else a post-order.
std::vector<const Instruction*> OrderToCopy(const Computation& c) {
  std::vector<const Instruction*> order;
  order.reserve(static_cast<size_t>(c.instruction_count()));
  absl::flat_hash_set<const Instruction*> seen;
  for (const auto& i : c.instructions()) {
    for (const Instruction* o : i->operands())
      if (!seen.contains(o)) {
        const std::vector<Instruction*> sorted = c.PostOrder();
        return {sorted.begin(), sorted.end()};
      }
    seen.insert(i.get());
    order.push_back(i.get());
  }
  return order;
}
}  // namespace

Computation* Module::CloneComputation(const Computation* c, absl::string_view suffix) {
  absl::flat_hash_map<const Computation*, Computation*> done;
  auto clone = [&](auto&& self, const Computation* x) -> Computation* {
    auto it = done.find(x);
    if (it != done.end()) return it->second;
    Computation* copy = AddComputation(absl::StrCat(x->name(), ".", suffix));
    copy->CopyFrom(*x, OrderToCopy(*x), [&](Computation* callee) { return self(self, callee); });
    done[x] = copy;
    return copy;
  };
  return clone(clone, c);
}

void Module::TakeComputationsOf(std::unique_ptr<Module> copy) {
  computations_ = std::move(copy->computations_);
  for (const auto& c : computations_) c->module_ = this;
  entry_ = copy->entry_;
  names_ = std::move(copy->names_);
  next_suffix_ = std::move(copy->next_suffix_);
  next_id_ = copy->next_id_;
}

std::unique_ptr<Module> Module::Clone() const {
  auto m = std::make_unique<Module>(name_);
  m->file = file;
  m->header_locs = header_locs;
  m->limits = limits;
  m->is_scheduled = is_scheduled;
  m->entry_layout = entry_layout;
  m->aliases = aliases;
  m->buffer_donors = buffer_donors;
  m->replica_count = replica_count;
  m->partition_count = partition_count;
  m->external_lapack = external_lapack;
  m->extra_header = extra_header;
  m->preamble = preamble;
  m->argument_names = argument_names;
  m->dimension_arguments = dimension_arguments;
  absl::flat_hash_map<const Computation*, Computation*> map;
  for (const auto& c : computations_) map[c.get()] = m->AddComputation(c->name());
  for (const auto& c : computations_)
    map.at(c.get())->CopyFrom(*c, OrderToCopy(*c), [&](Computation* x) { return map.at(x); });
  m->entry_ = map.at(entry_);
  return m;
}

absl::Status HeaderErrorAt(const Module& m, absl::string_view key, absl::string_view message, absl::StatusCode code) {
  const auto at = m.header_locs.find(key);
  const SourceLoc l = at == m.header_locs.end() ? SourceLoc{1, 1} : at->second;
  return absl::Status(code, absl::StrCat(m.file, ":", l.line, ":", l.column, ": error: ", key, ": ", message));
}

absl::Status ErrorAt(const Instruction* i, absl::string_view message, absl::StatusCode code) {
  const Module* m = i->parent() ? i->parent()->module() : nullptr;
  const SourceLoc l = i->loc();
  // A name made of the opcode says both.
  const absl::string_view op = TextOf(i->opcode());
  const bool named = absl::StartsWith(i->name(), op) && (i->name().size() == op.size() || i->name()[op.size()] == '.');
  return absl::Status(code, absl::StrCat(m && !m->file.empty() ? m->file : "<module>", ":", l.line, ":", l.column,
                                         ": error: ", named ? "" : op, named ? "" : " ", i->name(), ": ", message));
}

}  // namespace kiln
