#include "codegen/llvm/sha256.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"

namespace kiln {

Sha256::Sha256() : hash_(std::make_unique<llvm::SHA256>()) {}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;

void Sha256::Add(absl::string_view bytes) { hash_->update(llvm::StringRef(bytes.data(), bytes.size())); }

std::string Sha256::Hex() { return llvm::toHex(hash_->result(), /*LowerCase=*/true); }

}  // namespace kiln
