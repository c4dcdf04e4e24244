#include "aot/package/fingerprint.h"

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "aot/package/manifest.h"
#include "compiler/base/text.h"
#include "compiler/hlo/canonical_text.h"
#include "runtime_min/types.h"

namespace kiln {
Fingerprint::Fingerprint(const CompileOptions& o, uint64_t weights_hash) : hash_(weights_hash) {
  AddText(kKilnVersion);
  AddNumbers({KILN_ABI_VERSION, o.cpu.threads, o.cpu.flush_subnormals, static_cast<int64_t>(o.pipeline.algebra),
              KeepsExcess(o), SumsInF16(o), o.cpu.external_lapack, static_cast<int64_t>(o.debug.sanitizer),
              o.debug.bounds_check, o.debug.poison_freed, o.gpu.deterministic, o.gpu.tf32, o.gpu.fallback_kernels,
              static_cast<int64_t>(o.gpu.emulation), static_cast<int64_t>(o.gpu.transport), o.model.device_timeout_ms});
  for (const auto* names : {&o.cpu.levels, &o.gpu.targets}) {
    AddNumbers({static_cast<int64_t>(names->size())});
    for (const std::string& n : *names) AddText(n);
  }
  for (const auto& [at, algorithm] : o.gpu.tuning.algorithms) {
    const auto& [target, key, number] = at;
    AddText(target);
    AddText(key);
    AddNumbers({number, algorithm.version});
    AddNumbers(std::vector<int64_t>(algorithm.words.begin(), algorithm.words.end()));
  }
}

// An instruction without its operands and names.
std::string Fingerprint::TextOf(const Instruction* i) {
  return OwnText(
      i, [this](const Computation* c) { return absl::StrCat(HashOf(c)); },
      [](const Literal& l) {
        return absl::StrCat(
            StableHash(absl::string_view(reinterpret_cast<const char*>(l.data()), static_cast<size_t>(l.byte_size()))));
      });
}

// Of what the root computes: readers of several forms of a program list instructions, and operands that commute, in
// orders of their own, and the code is the same.
uint64_t Fingerprint::HashOf(const Computation* c) {
  if (const auto known = computations_.find(c); known != computations_.end()) return known->second;
  absl::flat_hash_map<const Instruction*, uint64_t> hash;
  for (const Instruction* i : c->PostOrder()) {
    std::vector<uint64_t> operands;
    for (const Instruction* o : i->operands()) operands.push_back(hash.at(o));
    if (i->HasTrait(Commutative)) std::sort(operands.begin(), operands.end());
    hash[i] = StableHash(
        absl::string_view(reinterpret_cast<const char*>(operands.data()), operands.size() * sizeof(uint64_t)),
        StableHash(TextOf(i)));
  }
  return computations_[c] = hash.at(c->root());
}

void Fingerprint::AddText(absl::string_view bytes) {
  AddNumbers({static_cast<int64_t>(bytes.size())});
  hash_ = StableHash(bytes, hash_);
}

void Fingerprint::AddNumbers(const std::vector<int64_t>& numbers) {
  hash_ = StableHash(absl::string_view(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(int64_t)),
                     hash_);
}

void Fingerprint::AddPorts(const std::vector<Port>& ports) {
  for (const Port& p : ports) {
    AddText(p.shape.ToString());
    AddNumbers({p.alias, p.alignment, p.low, p.high, p.weight});
  }
}

void Fingerprint::AddThunks(const ThunkSequence& thunks) {
  for (const Thunk& t : thunks) {
    AddNumbers({static_cast<int64_t>(t.kind), static_cast<int64_t>(t.nested.size())});
    const std::vector<Slice> own = {t.scratch, t.predicate};
    for (const auto* slices : {&t.reads, &t.writes, &own})
      for (const Slice& s : *slices) AddNumbers({s.kind, s.index, s.offset, s.size});
    if (t.instruction) {
      AddText(TextOf(t.instruction));
      for (const Instruction* o : t.instruction->operands()) AddText(o->shape().ToString());
      if (t.instruction->attrs().backend_config) AddText(t.instruction->attrs().backend_config->text);
    }
    for (const ThunkSequence& n : t.nested) AddThunks(n);
  }
}

std::string Fingerprint::Text() const { return absl::StrFormat("%016x", hash_); }

}  // namespace kiln
