// Rules on single instructions and on the HloModule line. verify_attributes.cc has which attributes an opcode takes,
// infer.cc which shape follows, verify_collectives.cc and verify_shardings.cc what devices mean.
//
// Source: XLA's verifier. Its rules that are not here, and why:
//   - execution threads of asynchronous computations, and that these hold one operation: calls run in program order;
//   - one fusion for each fused computation, no dead code in it: passes share and clean these up themselves;
//   - mixed precision without a flag: programs that XLA takes only with it are taken, and keep the types they state;
//   - origins, names against metadata, order of broadcast dimensions: carried, never read;
//   - memory spaces of layouts, shardings of loops against their bodies: they decide nothing here.
#include "compiler/hlo/verify.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "compiler/hlo/infer.h"
#include "compiler/hlo/scanner.h"
#include "compiler/hlo/sharding.h"

namespace kiln {

int64_t BitsInMemory(PrimitiveType type);

// The groups of rules. Each returns the first that is broken.
absl::Status CheckAttributes(const Instruction& i);  // verify_attributes.cc
namespace verify {
absl::Status CheckCollective(const Instruction* i, bool as_written);  // verify_collectives.cc
absl::Status CheckChannels(const Module& m);
absl::Status CheckSharding(const Instruction* i);  // verify_shardings.cc

namespace {

// A few bytes of text can ask for any amount of memory or time: these end in an error before it is taken.
constexpr int64_t kMaxElements = int64_t{1} << 48;  // of one array
constexpr int64_t kMaxInstructions = int64_t{1} << 24;
constexpr int64_t kMaxCallDepth = 2048;              // of computations that call one another
constexpr int64_t kMaxInterface = int64_t{1} << 17;  // arrays among the entry's parameters, and among its results
constexpr int64_t kMaxDevices = 4096;                // replicas times partitions
constexpr int64_t kMaxFftLength = int64_t{1} << 27;

}  // namespace

namespace {

absl::Status CheckOperands(const Computation& c) {
  if (!c.root() || c.root()->parent() != &c)
    return InvalidArgument(c.module()->file, ":1:1: error: computation ", c.name(), " has no root");
  for (const auto& i : c.instructions()) {
    for (const Instruction* o : i->operands()) {
      if (o->parent() != &c) return ErrorAt(i.get(), absl::StrCat("operand ", o->name(), " is of another computation"));
      if (!o->IsUsedBy(i.get()))
        return ErrorAt(i.get(), absl::StrCat("operand ", o->name(), " does not list it as a user"),
                       absl::StatusCode::kInternal);
    }
  }
  return absl::OkStatus();
}

// Kahn over operands and control edges.
absl::Status CheckAcyclic(const Computation& c) {
  absl::flat_hash_map<const Instruction*, int64_t> left;
  left.reserve(static_cast<size_t>(c.instruction_count()));
  std::vector<const Instruction*> ready;
  for (const auto& i : c.instructions()) {
    const absl::flat_hash_set<const Instruction*> operands(i->operands().begin(), i->operands().end());
    const auto n = static_cast<int64_t>(operands.size() + i->control_predecessors().size());
    left[i.get()] = n;
    if (n == 0) ready.push_back(i.get());
  }
  size_t done = 0;
  while (!ready.empty()) {
    const Instruction* i = ready.back();
    ready.pop_back();
    ++done;
    for (const auto* next : {&i->users(), &i->control_successors()})
      for (const Instruction* u : *next)
        if (--left[u] == 0) ready.push_back(u);
  }
  if (done == static_cast<size_t>(c.instruction_count())) return absl::OkStatus();
  for (const auto& i : c.instructions())
    if (left[i.get()] > 0) return ErrorAt(i.get(), "is part of a cycle");
  return absl::OkStatus();
}

// Depth first with a stack of its own: the depth is the input's to choose.
absl::Status CheckCalls(const Module& m) {
  absl::flat_hash_set<const Computation*> owned;
  for (const auto& c : m.computations()) owned.insert(c.get());
  struct Call {
    const Instruction* by;
    const Computation* callee;
  };
  struct Frame {
    const Computation* c;
    std::vector<Call> calls;
    size_t next = 0;
    int64_t depth = 1;
  };
  const auto frame = [](const Computation* c) {
    Frame f{c, {}};
    for (const auto& i : c->instructions())
      for (const Computation* callee : i->called()) f.calls.push_back({i.get(), callee});
    return f;
  };
  absl::flat_hash_map<const Computation*, int64_t> depth;  // of what it calls; 0 while it is open
  for (const auto& first : m.computations()) {
    if (depth.contains(first.get())) continue;
    std::vector<Frame> stack = {frame(first.get())};
    depth[first.get()] = 0;
    while (!stack.empty()) {
      Frame& f = stack.back();
      if (f.next == f.calls.size()) {
        depth[f.c] = f.depth;
        stack.pop_back();
        continue;
      }
      const Call call = f.calls[f.next];
      if (!call.callee || !owned.contains(call.callee))
        return ErrorAt(call.by, "calls a computation outside the module");
      const auto known = depth.find(call.callee);
      if (known == depth.end()) {
        depth[call.callee] = 0;
        stack.push_back(frame(call.callee));  // and then this call again
        continue;
      }
      if (known->second == 0)
        return ErrorAt(call.by, absl::StrCat("computation ", call.callee->name(), " calls itself"));
      ++f.next;
      f.depth = std::max(f.depth, known->second + 1);
      if (f.depth > kMaxCallDepth)
        return ErrorAt(call.by, absl::StrCat("calls nest deeper than ", kMaxCallDepth),
                       absl::StatusCode::kResourceExhausted);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckStructure(const Module& m) {
  if (m.instruction_count() > kMaxInstructions)
    return ResourceExhausted(m.file, ":1:1: error: the module has ", m.instruction_count(), " instructions, more than ",
                             kMaxInstructions, "");
  RETURN_IF_ERROR(CheckCalls(m));
  for (const auto& c : m.computations()) {
    RETURN_IF_ERROR(CheckOperands(*c));
    RETURN_IF_ERROR(CheckAcyclic(*c));
  }
  return absl::OkStatus();
}

namespace {

// Operations that hand values on, or update them in place: no other precision comes of them.
bool KeepsPrecision(Opcode op) {
  switch (op) {
    case Opcode::Bitcast:
    case Opcode::Call:
    case Opcode::Conditional:
    case Opcode::CopyDone:
    case Opcode::CopyStart:
    case Opcode::DynamicUpdateSlice:
    case Opcode::Fusion:
    case Opcode::GetTupleElement:
    case Opcode::Infeed:
    case Opcode::OptimizationBarrier:
    case Opcode::Recv:
    case Opcode::RecvDone:
    case Opcode::Send:
    case Opcode::SendDone:
    case Opcode::Tuple:
    case Opcode::While:
      return true;
    default:
      return false;
  }
}

// Layouts are another group's; dynamic extents fit any.
bool Same(const Shape& a, const Shape& b, bool exact_type) {
  if (a.IsTuple() != b.IsTuple() || a.tuple().size() != b.tuple().size()) return false;
  for (size_t k = 0; k < a.tuple().size(); ++k)
    if (!Same(a.tuple()[k], b.tuple()[k], exact_type)) return false;
  if (a.IsTuple()) return true;
  if (a.rank() != b.rank()) return false;
  if (a.type() != b.type() && (exact_type || !IsFloat(a.type()) || !IsFloat(b.type()))) return false;
  for (int64_t d = 0; d < a.rank(); ++d)
    if (a.dim(d) != b.dim(d) && !a.is_dynamic(d) && !b.is_dynamic(d)) return false;
  return true;
}

absl::Status CheckSize(const Instruction* i, int64_t most) {
  bool fits = true;
  ForEachLeaf(i->shape(), [&](const ShapeIndex&, const Shape& leaf) {
    int64_t n = 1;
    for (int64_t d : leaf.dims()) {
      fits = fits && (d <= 0 || n <= most / d);
      n = fits ? n * std::max<int64_t>(d, 1) : 1;
    }
  });
  if (fits) return absl::OkStatus();
  return ErrorAt(i, absl::StrCat("has more than ", most, " elements"), absl::StatusCode::kResourceExhausted);
}

}  // namespace

absl::Status CheckShape(const Instruction* i) {
  RETURN_IF_ERROR(CheckSize(i, kMaxElements));
  auto inferred = InferShape(*i);
  if (!inferred.ok()) return ErrorAt(i, inferred.status().message(), inferred.status().code());
  if (!Same(*inferred, i->shape(), KeepsPrecision(i->opcode())))
    return ErrorAt(i, absl::StrCat("shape is ", i->shape().ToString(false),
                                   ", but its operands and attributes make it ", inferred->ToString(false)));
  if (i->Is(Opcode::Bitcast)) {
    const int64_t from = BitsInMemory(i->operand(0)->shape().type()), to = BitsInMemory(i->shape().type());
    if (from != to && std::min(from, to) < 8)
      return ErrorAt(i,
                     absl::StrCat("reinterprets ", TextOf(i->operand(0)->shape().type()), " as ",
                                  TextOf(i->shape().type()), "; elements smaller than a byte are not packed here"),
                     absl::StatusCode::kUnimplemented);
  }
  return absl::OkStatus();
}

namespace {

// The part of a shape that an index names; null if there is none.
const Shape* PartAt(const Shape& shape, const ShapeIndex& index) {
  const Shape* p = &shape;
  for (int64_t k : index) {
    if (!p->IsTuple() || k < 0 || k >= static_cast<int64_t>(p->tuple().size())) return nullptr;
    p = &p->tuple()[static_cast<size_t>(k)];
  }
  return p;
}

absl::StatusOr<ShapeIndex> ReadIndex(Scanner& s) {
  RETURN_IF_ERROR(s.Expect("{"));
  ShapeIndex out;
  while (!s.Eat("}")) {
    if (!out.empty()) RETURN_IF_ERROR(s.Expect(","));
    ASSIGN_OR_RETURN(const int64_t k, s.Integer());
    out.push_back(k);
  }
  return out;
}

// {{0}: (1, {}), ...}: parts of the result that lie where parts of operands lie.
absl::Status CheckOutputAliases(const Instruction* i) {
  const std::string& text = i->attrs().output_to_operand_aliasing->text;
  const auto bad = [&](absl::string_view why) {
    return ErrorAt(i, absl::StrCat("output_to_operand_aliasing ", text, " ", why));
  };
  constexpr absl::string_view kForm = "is not of the form {{0}: (1, {})}";
  Scanner s(text, "");
  if (!s.Eat("{")) return bad(kForm);
  for (bool first = true; !s.Eat("}"); first = false) {
    if (!first && !s.Eat(",")) return bad(kForm);
    const auto out = ReadIndex(s);
    if (!out.ok() || !s.Eat(":") || !s.Eat("(")) return bad(kForm);
    const auto operand = s.Integer();
    if (!operand.ok() || !s.Eat(",")) return bad(kForm);
    const auto in = ReadIndex(s);
    if (!in.ok() || !s.Eat(")")) return bad(kForm);
    if (*operand < 0 || *operand >= i->operand_count())
      return bad(absl::StrCat("names operand ", *operand, " of ", i->operand_count()));
    const Shape* from = PartAt(i->operand(*operand)->shape(), *in);
    const Shape* to = PartAt(i->shape(), *out);
    if (!from || !to) return bad("names a part that does not exist");
    // A buffer stands for the array that it holds.
    const Shape& a = from->type() == PrimitiveType::Buffer ? from->tuple()[0] : *from;
    const Shape& b = to->type() == PrimitiveType::Buffer ? to->tuple()[0] : *to;
    if (!a.Compatible(b)) return bad(absl::StrCat("joins ", from->ToString(false), " and ", to->ToString(false)));
  }
  return absl::OkStatus();
}

absl::Status CheckComposite(const Instruction* i) {
  const std::string attributes = i->attrs().frontend_attributes ? i->attrs().frontend_attributes->text : "";
  const auto name = FrontendAttribute(attributes, "composite.name");
  if (!name || name->empty()) return ErrorAt(i, "a composite needs the frontend attribute composite.name");
  const auto version = FrontendAttribute(attributes, "composite.version");
  int64_t n;
  if (version && (!absl::SimpleAtoi(*version, &n) || n < 0))
    return ErrorAt(i, absl::StrCat("composite.version '", *version, "' is no number"));
  return absl::OkStatus();
}

// {f32[2]{0}, ...}: a shape with a layout for each operand.
absl::Status CheckLayoutConstraints(const Instruction* i) {
  const std::string& text = i->attrs().operand_layout_constraints->text;
  int64_t shapes = text.find_first_not_of("{} ") == std::string::npos ? 0 : 1, depth = 0;
  for (char c : text) {
    depth += c == '{' || c == '(' || c == '[';
    depth -= c == '}' || c == ')' || c == ']';
    shapes += c == ',' && depth == 1;
  }
  if (shapes == i->operand_count()) return absl::OkStatus();
  return ErrorAt(
      i, absl::StrCat("operand_layout_constraints lists ", shapes, " shapes for ", i->operand_count(), " operands"));
}

}  // namespace

absl::Status CheckOperation(const Instruction* i) {
  const Attributes& a = i->attrs();
  if (a.output_to_operand_aliasing) RETURN_IF_ERROR(CheckOutputAliases(i));
  switch (i->opcode()) {
    case Opcode::Call:
      return a.is_composite.value_or(false) ? CheckComposite(i) : absl::OkStatus();
    case Opcode::CustomCall:
      if (a.custom_call_target->text.empty()) return ErrorAt(i, "custom_call_target is empty");
      return a.operand_layout_constraints ? CheckLayoutConstraints(i) : absl::OkStatus();
    case Opcode::Constant:
      if (i->literal().shape().Compatible(i->shape())) return absl::OkStatus();
      return ErrorAt(i, absl::StrCat("holds ", i->literal().shape().ToString(false), ", its shape is ",
                                     i->shape().ToString(false)));
    case Opcode::Fft:
      for (int64_t n : *a.fft_length)
        if (n > kMaxFftLength)
          return ErrorAt(i, absl::StrCat("fft_length ", n, " is more than ", kMaxFftLength, ""),
                         absl::StatusCode::kResourceExhausted);
      return absl::OkStatus();
    case Opcode::Parameter: {
      const auto& parameters = i->parent()->parameters();
      const int64_t n = *a.parameter_number;
      if (n < static_cast<int64_t>(parameters.size()) && parameters[static_cast<size_t>(n)] == i)
        return absl::OkStatus();
      return ErrorAt(i, absl::StrCat("is not parameter ", n, " of ", i->parent()->name()));
    }
    default:
      return absl::OkStatus();
  }
}

namespace {

struct Pair {
  Opcode start;
  Opcode done;
};
constexpr Pair kPairs[] = {
    {Opcode::AllReduceStart, Opcode::AllReduceDone},
    {Opcode::AllGatherStart, Opcode::AllGatherDone},
    {Opcode::CollectivePermuteStart, Opcode::CollectivePermuteDone},
    {Opcode::CopyStart, Opcode::CopyDone},
};

bool IsStarted(const Instruction* i) { return i->Is(Opcode::AsyncStart) || i->Is(Opcode::AsyncUpdate); }

}  // namespace

absl::Status CheckAsync(const Instruction* i) {
  const std::vector<Instruction*>& users = i->users();
  const auto one_user = [&]() -> absl::Status {
    return users.size() > 1 ? ErrorAt(i, "has more than one user") : absl::OkStatus();
  };
  if (IsStarted(i)) {
    RETURN_IF_ERROR(one_user());
    if (users.size() == 1 && !users[0]->Is(Opcode::AsyncUpdate) && !users[0]->Is(Opcode::AsyncDone))
      return ErrorAt(i, absl::StrCat("is used by ", TextOf(users[0]->opcode()), ", not by async-update or async-done"));
  }
  if (i->Is(Opcode::AsyncUpdate) || i->Is(Opcode::AsyncDone)) {
    const Instruction* from = i->operand(0);
    if (!IsStarted(from)) return ErrorAt(i, "operand is no async-start or async-update");
    if (i->attrs().calls && from->attrs().calls && *i->attrs().calls != *from->attrs().calls)
      return ErrorAt(i, "wraps another computation than its operand");
  }
  for (const Pair& p : kPairs) {
    if (i->Is(p.start)) {
      RETURN_IF_ERROR(one_user());
      if (users.size() == 1 && !users[0]->Is(p.done))
        return ErrorAt(i, absl::StrCat("is used by ", TextOf(users[0]->opcode()), ", not by ", TextOf(p.done)));
    }
    if (i->Is(p.done) && !i->operand(0)->Is(p.start))
      return ErrorAt(i, absl::StrCat("operand is no ", TextOf(p.start)));
  }
  return absl::OkStatus();
}

absl::Status CheckLayout(const Instruction* i) {
  if (!i->IsElementwise() || i->Is(Opcode::Copy) || !i->shape().layout()) return absl::OkStatus();
  for (const Instruction* o : i->operands()) {
    if (o->shape().rank() != i->shape().rank() || !o->shape().layout()) continue;
    if (o->shape().layout()->minor_to_major != i->shape().layout()->minor_to_major)
      return ErrorAt(i, absl::StrCat("layout is ", i->shape().layout()->ToString(), ", operand ", o->name(), " has ",
                                     o->shape().layout()->ToString()));
  }
  return absl::OkStatus();
}

namespace {

absl::Status HeaderError(const Module& m, absl::string_view key, absl::string_view message) {
  return InvalidArgument(m.file, ":1:1: error: ", key, ": ", message);
}

absl::Status CheckCounts(const Module& m) {
  const auto count = [&](absl::string_view key, int64_t n) -> absl::Status {
    if (n < 1) return HeaderError(m, key, absl::StrCat(n, " is less than 1"));
    if (n <= kMaxDevices) return absl::OkStatus();
    return HeaderError(m, key, absl::StrCat(n, " is more than ", kMaxDevices, ""));
  };
  RETURN_IF_ERROR(count("replica_count", m.replica_count));
  RETURN_IF_ERROR(count("num_partitions", m.partition_count));
  if (m.replica_count * m.partition_count <= kMaxDevices) return absl::OkStatus();
  return HeaderError(m, "replica_count",
                     absl::StrCat(m.replica_count, " replicas of ", m.partition_count, " partitions are more than ",
                                  kMaxDevices, " devices"));
}

absl::Status CheckInterfaceSize(const Module& m) {
  int64_t in = 0, out = 0;
  for (const Instruction* p : m.entry()->parameters())
    ForEachLeaf(p->shape(), [&](const ShapeIndex&, const Shape&) { ++in; });
  ForEachLeaf(m.entry()->root()->shape(), [&](const ShapeIndex&, const Shape&) { ++out; });
  const int64_t most = kMaxInterface;
  if (in > most)
    return ErrorAt(m.entry()->parameter(0), absl::StrCat("the entry takes ", in, " arrays, more than ", most, ""),
                   absl::StatusCode::kResourceExhausted);
  if (out > most)
    return ErrorAt(m.entry()->root(), absl::StrCat("gives ", out, " arrays, more than ", most, ""),
                   absl::StatusCode::kResourceExhausted);
  return absl::OkStatus();
}

absl::Status CheckEntryLayout(const Module& m) {
  if (!m.entry_layout) return absl::OkStatus();
  const EntryLayout& l = *m.entry_layout;
  const std::vector<Instruction*>& parameters = m.entry()->parameters();
  if (l.parameters.size() != parameters.size())
    return HeaderError(m, "entry_computation_layout",
                       absl::StrCat("has ", l.parameters.size(), " parameters, the entry ", parameters.size()));
  for (size_t p = 0; p < parameters.size(); ++p)
    if (!l.parameters[p].Compatible(parameters[p]->shape()))
      return ErrorAt(parameters[p], absl::StrCat("shape is ", parameters[p]->shape().ToString(false),
                                                 ", the entry layout says ", l.parameters[p].ToString(false)));
  if (!l.result.Compatible(m.entry()->root()->shape()))
    return ErrorAt(m.entry()->root(), absl::StrCat("shape is ", m.entry()->root()->shape().ToString(false),
                                                   ", the entry layout says ", l.result.ToString(false)));
  return absl::OkStatus();
}

absl::Status CheckAliases(const Module& m) {
  constexpr absl::string_view kAliases = "input_output_alias", kDonors = "buffer_donor";
  const auto parameters = static_cast<int64_t>(m.entry()->parameters().size());
  absl::flat_hash_set<std::string> inputs, outputs, donors;
  for (const AliasEntry& e : m.aliases) {
    if (e.parameter < 0 || e.parameter >= parameters)
      return HeaderError(m, kAliases, absl::StrCat("names parameter ", e.parameter, " of ", parameters));
    const Shape* in = PartAt(m.entry()->parameter(e.parameter)->shape(), e.parameter_index);
    const Shape* out = PartAt(m.entry()->root()->shape(), e.output);
    if (!in || !out) return HeaderError(m, kAliases, "names an index that does not exist");
    if (in->ByteSize() != out->ByteSize())
      return HeaderError(
          m, kAliases,
          absl::StrCat("joins ", in->ToString(false), " and ", out->ToString(false), " of different sizes"));
    if (!inputs.insert(absl::StrCat(e.parameter, AttrText(e.parameter_index))).second)
      return HeaderError(m, kAliases,
                         absl::StrCat("uses parameter ", e.parameter, AttrText(e.parameter_index), " twice"));
    if (!outputs.insert(AttrText(e.output)).second)
      return HeaderError(m, kAliases, absl::StrCat("uses result ", AttrText(e.output), " twice"));
  }
  for (const auto& [parameter, index] : m.buffer_donors) {
    if (parameter < 0 || parameter >= parameters)
      return HeaderError(m, kDonors, absl::StrCat("names parameter ", parameter, " of ", parameters));
    if (!PartAt(m.entry()->parameter(parameter)->shape(), index))
      return HeaderError(m, kDonors, absl::StrCat("names an index of parameter ", parameter, " that does not exist"));
    const std::string text = absl::StrCat(parameter, AttrText(index));
    if (!donors.insert(text).second) return HeaderError(m, kDonors, absl::StrCat("names parameter ", text, " twice"));
    if (inputs.contains(text))
      return HeaderError(m, kDonors, absl::StrCat("parameter ", text, " has an alias already"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckHeader(const Module& m) {
  RETURN_IF_ERROR(CheckCounts(m));
  RETURN_IF_ERROR(CheckInterfaceSize(m));
  RETURN_IF_ERROR(CheckEntryLayout(m));
  return CheckAliases(m);
}

absl::Status CheckSchedule(const Module& m) {
  if (!m.is_scheduled) return absl::OkStatus();
  for (const auto& c : m.computations()) {
    absl::flat_hash_set<const Instruction*> before;
    for (const auto& i : c->instructions()) {
      for (const auto* list : {&i->operands(), &i->control_predecessors()})
        for (const Instruction* o : *list)
          if (!before.contains(o))
            return ErrorAt(i.get(), absl::StrCat("is scheduled before ", o->name(), ", which it waits for"));
      before.insert(i.get());
    }
  }
  return absl::OkStatus();
}

}  // namespace verify

absl::Status VerifyModule(const Module& m, const VerifyOptions& options) {
  RETURN_IF_ERROR(verify::CheckStructure(m));
  // Called computations are read by the rules of their callers: each has its attributes before any shape is looked at.
  for (const auto& c : m.computations())
    for (const auto& i : c->instructions()) RETURN_IF_ERROR(CheckAttributes(*i));
  for (const auto& c : m.computations()) {
    for (const auto& i : c->instructions()) {
      RETURN_IF_ERROR(verify::CheckShape(i.get()));
      RETURN_IF_ERROR(verify::CheckOperation(i.get()));
      RETURN_IF_ERROR(verify::CheckAsync(i.get()));
      RETURN_IF_ERROR(verify::CheckCollective(i.get(), false));
      if (options.layout_sensitive) RETURN_IF_ERROR(verify::CheckLayout(i.get()));
    }
  }
  RETURN_IF_ERROR(verify::CheckChannels(m));
  return verify::CheckHeader(m);
}

// The rules that hold for modules as their front ends wrote them, and those above: passes reshape what shardings stand
// on, and counts of devices are settled behind some groups.
absl::Status VerifyAsWritten(const Module& m) {
  RETURN_IF_ERROR(VerifyModule(m));
  for (const auto& c : m.computations())
    for (const auto& i : c->instructions()) {
      RETURN_IF_ERROR(verify::CheckCollective(i.get(), true));
      RETURN_IF_ERROR(verify::CheckSharding(i.get()));
    }
  return verify::CheckSchedule(m);
}

}  // namespace kiln
