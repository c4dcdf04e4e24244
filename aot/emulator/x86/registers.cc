#include "aot/emulator/x86/registers.h"

#include <cpuid.h>

#include <cstring>

namespace kiln::x86 {
namespace {

// Components of the XSAVE area, and where its parts lie that are the same everywhere.
enum { kSse = 1, kYmmHigh = 2, kOpmask = 5, kZmmHigh = 6, kZmm16 = 7, kComponents = 8 };
constexpr int kXmmOffset = 160, kHeaderOffset = 512;

// Where the others lie; 0: not here.
struct Layout {
  unsigned offset[kComponents] = {};
  Layout() {
    constexpr unsigned kStateLeaf = 0xd;
    unsigned a, b, c, d;
    for (unsigned component : {kYmmHigh, kOpmask, kZmmHigh, kZmm16})
      if (__get_cpuid_count(kStateLeaf, component, &a, &b, &c, &d) && a) offset[component] = b;
  }
};
const Layout layout;

}  // namespace

VectorRegisters::VectorRegisters(const ucontext_t& context)
    : frame_(reinterpret_cast<uint8_t*>(context.uc_mcontext.fpregs)) {}

bool VectorRegisters::InUse(int component) const {
  uint64_t in_use;
  std::memcpy(&in_use, frame_ + kHeaderOffset, sizeof in_use);
  return in_use >> component & 1;
}

uint8_t* VectorRegisters::Part(int component) const {
  if (component == kSse) return frame_ + kXmmOffset;
  return layout.offset[component] ? frame_ + layout.offset[component] : nullptr;
}

// What is not in use is zero, whatever the frame holds.
uint8_t* VectorRegisters::MakeInUse(int component, int bytes) {
  uint8_t* part = Part(component);
  if (!part || InUse(component)) return part;
  std::memset(part, 0, static_cast<size_t>(bytes));
  uint64_t in_use;
  std::memcpy(&in_use, frame_ + kHeaderOffset, sizeof in_use);
  in_use |= uint64_t{1} << component;
  std::memcpy(frame_ + kHeaderOffset, &in_use, sizeof in_use);
  return part;
}

Vector VectorRegisters::Read(int number) const {
  Vector out;
  const auto take = [&](int component, int index, int bytes, int at) {
    const uint8_t* part = Part(component);
    if (part && InUse(component)) std::memcpy(out.byte + at, part + index * bytes, static_cast<size_t>(bytes));
  };
  if (number >= 16) {
    take(kZmm16, number - 16, 64, 0);
    return out;
  }
  take(kSse, number, 16, 0);
  take(kYmmHigh, number, 16, 16);
  take(kZmmHigh, number, 32, 32);
  return out;
}

void VectorRegisters::Write(int number, const Vector& value) {
  const auto put = [&](int component, int index, int bytes, int at) {
    uint8_t* part = MakeInUse(component, 16 * bytes);
    if (part) std::memcpy(part + index * bytes, value.byte + at, static_cast<size_t>(bytes));
  };
  if (number >= 16) return put(kZmm16, number - 16, 64, 0);
  put(kSse, number, 16, 0);
  put(kYmmHigh, number, 16, 16);
  put(kZmmHigh, number, 32, 32);
}

void VectorRegisters::WriteMask(int number, uint64_t value) {
  if (uint8_t* part = MakeInUse(kOpmask, 64)) std::memcpy(part + number * 8, &value, sizeof value);
}

uint64_t VectorRegisters::Mask(int number) const {
  uint64_t mask = 0;
  const uint8_t* part = Part(kOpmask);
  if (part && InUse(kOpmask)) std::memcpy(&mask, part + number * 8, sizeof mask);
  return mask;
}

}  // namespace kiln::x86
