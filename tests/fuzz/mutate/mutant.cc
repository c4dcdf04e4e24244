#include <algorithm>

#include "tests/fuzz/mutate/mutations.h"

namespace kiln::mutate {
namespace {

// How many of a hundred mutants are of each kind, if there are inputs of all.
constexpr size_t kShare[kKinds] = {40, 25, 10, 12, 4, 4, 5};

bool IsText(const std::string& s) {
  return std::none_of(s.begin(), s.end(), [](unsigned char c) { return c < 9 || c > 126; });
}

Kind SomeKind(const std::vector<Input>& inputs, Random& random) {
  size_t share[kKinds] = {}, sum = 0;
  for (const Input& i : inputs) share[static_cast<int>(i.kind)] = kShare[static_cast<int>(i.kind)];
  for (size_t n : share) sum += n;
  size_t at = random.Below(sum);
  int kind = 0;
  while (at >= share[kind]) at -= share[kind++];
  return static_cast<Kind>(kind);
}

}  // namespace

Input Mutant(const std::vector<Input>& inputs, uint64_t number) {
  Random random(number);
  const Kind kind = SomeKind(inputs, random);
  std::vector<const Input*> alike;
  for (const Input& i : inputs)
    if (i.kind == kind) alike.push_back(&i);
  const Input* base = random.Of(alike);
  Input out = *base;
  const bool text = IsText(out.bytes);
  // The binary form of a proto that was changed as text is well formed where bytes that were changed are not.
  const bool serialize = kind == Kind::kProto && text && random.Below(2) == 0;
  for (size_t edits = 1 + random.Below(random.Below(4) ? 1 : 4); edits > 0; --edits) {
    const std::string& other = random.Of(alike)->bytes;
    const bool as_text = kind == Kind::kNpy ? random.Below(2) == 0 : text;
    out.bytes =
        as_text ? MutateText(std::move(out.bytes), other, random) : MutateBytes(std::move(out.bytes), other, random);
    if (out.bytes.size() > kLargestMutant) out.bytes.resize(kLargestMutant);
  }
  if (serialize)
    if (std::string binary = BinaryProto(out.bytes); !binary.empty()) out.bytes = std::move(binary);
  return out;
}

}  // namespace kiln::mutate
