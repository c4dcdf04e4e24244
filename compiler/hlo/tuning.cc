#include "compiler/hlo/tuning.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/base/text.h"
#include "compiler/hlo/canonical_text.h"
#include "compiler/hlo/library_calls.h"

namespace kiln {

void TuningResults::Add(const std::string& target, const std::string& key, const TunedAlgorithm& found) {
  found_[target][key].push_back(found);
}

void TuningResults::Deny(const std::string& target, const std::string& key, int64_t algorithm) {
  denied_.insert({target, key, algorithm});
}

bool TuningResults::Denied(const std::string& target, const std::string& key, int64_t algorithm) const {
  return denied_.count({target, key, algorithm}) > 0;
}

std::optional<TunedAlgorithm> TuningResults::Find(const std::string& target, const std::string& key) const {
  const auto of_target = found_.find(target);
  if (of_target == found_.end()) return std::nullopt;
  const auto of_key = of_target->second.find(key);
  if (of_key == of_target->second.end()) return std::nullopt;
  std::optional<TunedAlgorithm> best;
  for (const TunedAlgorithm& a : of_key->second)
    if (!Denied(target, key, a.algorithm) && (!best || a.microseconds < best->microseconds)) best = a;
  return best;
}

std::vector<std::string> TuningResults::Targets() const {
  std::vector<std::string> out;
  for (const auto& [target, results] : found_) out.push_back(target);
  return out;
}

bool IsTunableProduct(const Instruction* i) {
  if (IsCallTo(i, kGemmTarget)) return true;
  if (i->Is(Opcode::Convolution)) {
    constexpr int64_t kFewestFeatures = 8;
    return i->shape().ElementCount() > 0 &&
           i->shape().dims().back() / i->attrs().feature_group_count.value_or(1) >= kFewestFeatures;
  }
  if (i->Is(Opcode::Dot)) return i->shape().rank() == 3 && i->shape().ElementCount() > 0;
  return i->Is(Opcode::Fusion) && i->attrs().backend_config &&
         absl::StrContains(i->attrs().backend_config->text, "__triton_gemm");
}

bool IsTunableConvolution(const Instruction* i) {
  return IsCallTo(i, kConvForwardTarget) || IsCallTo(i, kConvBackwardInputTarget) ||
         IsCallTo(i, kConvBackwardFilterTarget) || IsCallTo(i, kConvBiasActivationTarget);
}

std::vector<Instruction*> Tunables(const Module& m) {
  absl::flat_hash_set<const Computation*> fused;
  for (const auto& c : m.computations())
    for (const auto& i : c->instructions())
      if (i->Is(Opcode::Fusion)) fused.insert(*i->attrs().calls);
  std::vector<Instruction*> out;
  for (Computation* c : m.PostOrder()) {
    if (fused.contains(c)) continue;
    for (Instruction* i : c->PostOrder())
      if (IsTunableProduct(i) || IsTunableConvolution(i)) out.push_back(i);
  }
  return out;
}

std::string TuningText(const Instruction* i) {
  std::string config = i->attrs().backend_config ? i->attrs().backend_config->text : std::string();
  if (const auto chosen = ConfigField(config, "selected_algorithm")) {
    const std::string field = absl::StrCat("\"selected_algorithm\":\"", *chosen, "\"");
    for (const std::string& form : {"," + field, field + ",", field})
      if (const size_t at = config.find(form); at != config.npos) {
        config.erase(at, form.size());
        break;
      }
  }
  if (config == "{}") config.clear();
  std::string text = CanonicalText(i);
  // The workspace of a convolution is a part of the choice.
  if (IsTunableConvolution(i)) text = absl::StrCat(i->shape().tuple()[0].ToString(), text.substr(text.find(')') + 1));
  return absl::StrCat(text, config.empty() ? "" : "|", config);
}

std::string TuningKey(const Instruction* i) { return absl::StrFormat("%016x", StableHash(TuningText(i))); }

}  // namespace kiln
