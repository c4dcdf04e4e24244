// Sums of arrays that are padded with zeros, as gradients of slices and of rows of a stack are.
#include <algorithm>

#include "compiler/passes/simplify/rules/rule.h"
#include "compiler/passes/simplify/rules/terms.h"

namespace kiln {
namespace {

using Values = std::vector<Instruction*>;

// What the sum `i` is of. Empty where another sum goes on with it, or where there is too much of it.
Values TermsOf(Instruction* i) {
  constexpr size_t kMost = 256;
  if (HasOneUser(i) && i->users()[0]->Is(Opcode::Add)) return {};
  Values terms, rest = {i};
  while (!rest.empty() && terms.size() + rest.size() <= kMost) {
    Instruction* t = rest.back();
    rest.pop_back();
    if (t == i || (t->Is(Opcode::Add) && HasOneUser(t)))
      rest.insert(rest.end(), {t->operand(1), t->operand(0)});
    else
      terms.push_back(t);
  }
  return rest.empty() ? terms : Values();
}

bool IsZeroPad(const Instruction* i) {
  return i->Is(Opcode::Pad) && HasOneUser(i) && pattern::IsAll(i->operand(1), 0) && !HasOwnLayout(i) &&
         !i->shape().HasDynamic();
}

Instruction* SumOf(const Values& terms) {
  Expr sum = terms[0];
  for (size_t k = 1; k < terms.size(); ++k) sum = sum + terms[k];
  return sum.get();
}

// Those that are padded alike are added before they are padded.
Instruction* OfPadsAlike(Instruction* i) {
  if (HasOwnLayout(i)) return nullptr;
  std::vector<Values> groups;
  for (Instruction* t : TermsOf(i)) {
    const auto alike = [&](const Values& g) {
      return IsZeroPad(t) && IsZeroPad(g[0]) && *g[0]->attrs().padding == *t->attrs().padding &&
             g[0]->operand(0)->shape() == t->operand(0)->shape();
    };
    const auto g = std::find_if(groups.begin(), groups.end(), alike);
    if (g != groups.end())
      g->push_back(t);
    else
      groups.push_back({t});
  }
  if (std::all_of(groups.begin(), groups.end(), [](const Values& g) { return g.size() == 1; })) return nullptr;
  Values terms;
  for (const Values& g : groups) {
    if (g.size() > 1) {
      Values inner;
      for (const Instruction* pad : g) inner.push_back(pad->operand(0));
      terms.push_back(Over(g[0], {SumOf(inner), g[0]->operand(1)}));
    } else {
      terms.push_back(g[0]);
    }
  }
  return SumOf(terms);
}

// The only dimension along which `pad` adds something, and it adds at the ends; -1: there is none.
int64_t DimOf(const Instruction* pad) {
  int64_t dim = -1;
  const attr::Padding& p = *pad->attrs().padding;
  for (size_t d = 0; d < p.size(); ++d) {
    if (p[d] == PadDim{}) continue;
    if (dim >= 0 || p[d].low < 0 || p[d].high < 0 || p[d].interior != 0) return -1;
    dim = static_cast<int64_t>(d);
  }
  return dim;
}

int64_t LowOf(const Instruction* pad) { return (*pad->attrs().padding)[static_cast<size_t>(DimOf(pad))].low; }

// Many that lie side by side are put there: to ask of each element which of them it is in takes longer.
Instruction* OfPadsApart(Instruction* i) {
  constexpr size_t kMany = 5;
  if (HasOwnLayout(i)) return nullptr;
  Values pads, terms;
  for (Instruction* t : TermsOf(i)) {
    const bool fits = IsZeroPad(t) && DimOf(t) >= 0 && (pads.empty() || DimOf(t) == DimOf(pads[0]));
    (fits ? pads : terms).push_back(t);
  }
  if (pads.size() < kMany) return nullptr;
  std::stable_sort(pads.begin(), pads.end(),
                   [](const Instruction* a, const Instruction* b) { return LowOf(a) < LowOf(b); });
  const int64_t d = DimOf(pads[0]), extent = i->shape().dim(d);
  int64_t end = 0;
  for (const Instruction* pad : pads) {
    if (LowOf(pad) < end) return nullptr;
    end = LowOf(pad) + pad->operand(0)->shape().dim(d);
  }
  std::vector<Expr> parts;
  const auto zeros = [&](int64_t count) {
    Ints dims = i->shape().dims();
    dims[static_cast<size_t>(d)] = count;
    if (count > 0) parts.push_back(BroadcastTo(i->parent()->AddConstant(Literal::Of(i->shape().type(), 0)), dims));
  };
  end = 0;
  for (const Instruction* pad : pads) {
    zeros(LowOf(pad) - end);
    parts.push_back(pad->operand(0));
    end = LowOf(pad) + pad->operand(0)->shape().dim(d);
  }
  zeros(extent - end);
  terms.insert(terms.begin(), ConcatOf(parts, d).get());
  return SumOf(terms);
}

const Rule kRules[] = {
    {"sum-of-pads-alike",
     {Opcode::Add},
     kInts | kFloats | kComplex,
     Numerics::Order,
     "z = $T[] constant(0)\n a = $T[7,6] pad(p, z), padding=1_2x0_0\n b = $T[7,6] pad(q, z), padding=1_2x0_0\n"
     " ROOT r = $T[7,6] add(a, b)",
     "z = $T[] constant(0)\n a = $T[7,6] pad(p, z), padding=1_2x0_0\n b = $T[7,6] pad(q, z), padding=2_1x0_0\n"
     " ROOT r = $T[7,6] add(a, b)",
     OfPadsAlike},
    {"sum-of-pads-apart",
     {Opcode::Add},
     kInts | kFloats | kComplex,
     Numerics::Order,
     "ENTRY e { v = $T[5,1,6] parameter(0)\n z = $T[] constant(0)\n"
     " a = $T[1,1,6] slice(v), slice={[0:1], [0:1], [0:6]}\n b = $T[1,1,6] slice(v), slice={[1:2], [0:1], [0:6]}\n"
     " c = $T[1,1,6] slice(v), slice={[2:3], [0:1], [0:6]}\n d = $T[1,1,6] slice(v), slice={[3:4], [0:1], [0:6]}\n"
     " e = $T[1,1,6] slice(v), slice={[4:5], [0:1], [0:6]}\n pa = $T[9,1,6] pad(a, z), padding=1_7x0_0x0_0\n"
     " pb = $T[9,1,6] pad(b, z), padding=2_6x0_0x0_0\n pc = $T[9,1,6] pad(c, z), padding=5_3x0_0x0_0\n"
     " pd = $T[9,1,6] pad(d, z), padding=6_2x0_0x0_0\n pe = $T[9,1,6] pad(e, z), padding=4_4x0_0x0_0\n"
     " s = $T[9,1,6] add(pa, pb)\n t = $T[9,1,6] add(s, pc)\n u = $T[9,1,6] add(t, pd)\n"
     " ROOT r = $T[9,1,6] add(u, pe) }",
     "z = $T[] constant(0)\n a = $T[8,6] pad(p, z), padding=0_4x0_0\n b = $T[8,6] pad(q, z), padding=4_0x0_0\n"
     " ROOT r = $T[8,6] add(a, b)",
     OfPadsApart},
};

}  // namespace

absl::Span<const Rule> PadSumRules() { return kRules; }

}  // namespace kiln
