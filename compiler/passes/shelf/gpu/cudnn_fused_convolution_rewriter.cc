// max(0, alpha * conv(x, w) + beta * side + bias) and its parts become one call of cuDNN.
//
//   Floats: the bias is a vector along the features; relu is optional.
//   Integers: the sum of s32, scaled in f32, is clamped to [-128, 127] and converted to s8, or stays f32; with or
//   without a side input. The clamp comes before the conversion, as the library rounds.
// The convolution must have no other reader.
#include <optional>

#include "compiler/hlo/graph_builder.h"
#include "compiler/hlo/library_calls.h"
#include "compiler/pass/pass.h"
#include "compiler/passes/expand/expand_each.h"
#include "compiler/passes/other_passes.h"

namespace kiln {
namespace {

// What is found on the way from a root down to the convolution.
struct Match {
  Instruction* call = nullptr;
  Instruction *bias = nullptr, *side = nullptr;
  ConvConfig config;
  bool relu = false, clamp = false;
};

bool OneReader(const Instruction* i) { return i->users().size() == 1 && !i->IsRoot(); }

// The vector that `i` repeats along the features of the result, or nullptr.
Instruction* Bias(Instruction* i, int64_t feature) {
  if (!i->Is(Opcode::Broadcast) || i->operand(0)->shape().rank() != 1) return nullptr;
  return *i->attrs().dimensions == Ints{feature} ? i->operand(0) : nullptr;
}

// alpha * conv, or conv, behind the conversions of integers.
bool Scaled(Instruction* i, Match* m) {
  if (i->Is(Opcode::Multiply))
    for (int64_t k = 0; k < 2; ++k)
      if (const auto v = FloatSplat(i->operand(k)); v && OneReader(i->operand(1 - k))) {
        m->config.conv_scale = *v;
        return Scaled(i->operand(1 - k), m);
      }
  if (i->Is(Opcode::Convert) && i->operand(0)->shape().type() == PrimitiveType::S32 &&
      i->shape().type() == PrimitiveType::F32 && OneReader(i->operand(0)))
    i = i->operand(0);
  if (!i->Is(Opcode::GetTupleElement) || *i->attrs().tuple_index != 0 || !IsCallTo(i->operand(0), kConvForwardTarget) ||
      !OneReader(i->operand(0)))
    return false;
  m->call = i->operand(0);
  return true;
}

// beta * side, or side.
void TakeSide(Instruction* i, Match* m) {
  m->config.side_scale = 1;
  if (i->Is(Opcode::Multiply))
    for (int64_t k = 0; k < 2; ++k)
      if (const auto v = FloatSplat(i->operand(k))) {
        m->config.side_scale = *v;
        i = i->operand(1 - k);
        break;
      }
  m->side = i;
}

// A sum of the scaled convolution, a bias and perhaps a side input.
bool Sum(Instruction* i, Match* m) {
  std::vector<Instruction*> terms;
  if (!i->Is(Opcode::Add)) return false;
  for (int64_t k = 0; k < 2; ++k) {
    Instruction* t = i->operand(k);
    if (t->Is(Opcode::Add) && OneReader(t) && terms.size() < 2) {
      terms.push_back(t->operand(0));
      terms.push_back(t->operand(1));
    } else {
      terms.push_back(t);
    }
  }
  for (size_t k = 0; k < terms.size(); ++k) {
    if (!OneReader(terms[k]) || !Scaled(terms[k], m)) continue;
    const int64_t feature = m->call->attrs().dim_labels->output_feature;
    for (size_t q = 0; q < terms.size(); ++q) {
      if (q == k) continue;
      if (Instruction* b = Bias(terms[q], feature); b && !m->bias)
        m->bias = b;
      else if (!m->side)
        TakeSide(terms[q], m);
      else
        return false;
    }
    return m->bias != nullptr;
  }
  return false;
}

std::optional<Match> MatchAt(Instruction* root) {
  Match m;
  Instruction* i = root;
  if (!root->shape().IsArray()) return std::nullopt;
  if (i->Is(Opcode::Convert) && i->shape().type() == PrimitiveType::S8) {
    Instruction* clamp = i->operand(0);
    if (clamp->Is(Opcode::RoundNearestEven)) clamp = clamp->operand(0);
    if (clamp == i->operand(0) || !clamp->Is(Opcode::Clamp) || FloatSplat(clamp->operand(0)) != -128.0 ||
        FloatSplat(clamp->operand(2)) != 127.0 || !OneReader(clamp) || !OneReader(i->operand(0)))
      return std::nullopt;
    m.clamp = true;
    i = clamp->operand(1);
    if (!OneReader(i)) return std::nullopt;
  }
  if (i->Is(Opcode::Maximum))
    for (int64_t k = 0; k < 2 && !m.relu; ++k)
      if (FloatSplat(i->operand(k)) == 0.0) {
        m.relu = true;
        i = i->operand(1 - k);
      }
  if (m.relu && !OneReader(i)) return std::nullopt;
  if (!Sum(i, &m)) return std::nullopt;
  const PrimitiveType in = m.call->operand(0)->shape().type();
  const bool integers = in == PrimitiveType::S8;
  if (integers != (m.clamp || i->shape().type() == PrimitiveType::F32) && integers) return std::nullopt;
  if (m.clamp && !integers) return std::nullopt;
  if (integers && m.bias->shape().type() != PrimitiveType::F32) return std::nullopt;
  if (!integers && in != root->shape().type()) return std::nullopt;
  m.config.activation = m.relu ? "kRelu" : "kNone";
  return m;
}

}  // namespace

absl::StatusOr<bool> CudnnFusedConvolutionRewriter(Module& m, PassContext& ctx) {
  bool changed = false;
  for (const auto& c : m.computations()) {
    // From the roots of expressions on: the largest match first.
    std::vector<Instruction*> order = c->PostOrder();
    absl::flat_hash_set<const Instruction*> gone;
    for (size_t k = order.size(); k-- > 0;) {
      Instruction* i = order[k];
      if (gone.contains(i) || (i->users().empty() && !i->IsRoot())) continue;
      const auto match = MatchAt(i);
      if (!match || !ctx.Take()) continue;
      const Shape none = Shape::Array(PrimitiveType::U8, {0});
      std::vector<Instruction*> operands = {match->call->operand(0), match->call->operand(1), match->bias};
      if (match->side) operands.push_back(match->side);
      Instruction* call = c->AddClone(match->call, Shape::Tuple({i->shape(), none}), operands);
      call->mutable_attrs().custom_call_target = attr::Str(kConvBiasActivationTarget);
      call->mutable_attrs().backend_config = ToText(match->config);
      call->set_loc(i->loc());
      Instruction* result = PartOf(call, 0).get();
      i->ReplaceAllUsesWith(result);
      gone.insert(i);
      changed = true;
    }
  }
  if (changed) RETURN_IF_ERROR(Dce(m, ctx).status());
  return changed;
}

}  // namespace kiln
