// Attributes of an instruction: one optional field per row of attributes.def.
//
// Why one struct: an opcode reads the fields it knows, and parser, printer, equality, hash and clone are expansions of
// the table, so a new attribute is one row. Fields that kiln only carries are kept as text (`Raw`).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "compiler/hlo/attribute_words.h"
#include "compiler/hlo/shape.h"

namespace kiln {

class Computation;

struct SliceDim {
  int64_t start = 0, limit = 0, stride = 1;
  bool operator==(const SliceDim&) const = default;
};

struct PadDim {
  int64_t low = 0, high = 0, interior = 0;
  bool operator==(const PadDim&) const = default;
};

struct WindowDim {
  int64_t size = 1, stride = 1, pad_low = 0, pad_high = 0, lhs_dilate = 1, rhs_dilate = 1;
  bool reversed = false;
  bool operator==(const WindowDim&) const = default;
  // Extent of the window with its dilation holes.
  int64_t DilatedSize() const { return size == 0 ? 0 : (size - 1) * rhs_dilate + 1; }
};

// Positions of each role in the three shapes of a convolution; spatial lists are equally long.
struct ConvDimensionNumbers {
  int64_t input_batch = 0, input_feature = 0;
  Ints input_spatial;
  int64_t kernel_input = 0, kernel_output = 0;
  Ints kernel_spatial;
  int64_t output_batch = 0, output_feature = 0;
  Ints output_spatial;
  // Dimensions of input, kernel and output without a role, written `?`: calls of libraries have them.
  int64_t input_others = 0, kernel_others = 0, output_others = 0;
  bool operator==(const ConvDimensionNumbers&) const = default;
  std::string ToString() const;
};

// Parses "b01f_01io->b01f"; nullopt if it is not of that form.
std::optional<ConvDimensionNumbers> ParseConvDims(absl::string_view text);

namespace attr {
using Ints = kiln::Ints;
using Int = int64_t;
using Num = double;
using Bool = bool;
struct Raw {
  std::string text;
  Raw() = default;
  Raw(std::string t) : text(std::move(t)) {}  // NOLINT: attributes read best when assigned from text
  Raw(const char* t) : text(t) {}             // NOLINT
  bool operator==(const Raw&) const = default;
  bool operator==(const char* o) const { return text == o; }
};
struct Str : Raw {
  using Raw::Raw;
  bool operator==(const Str&) const = default;
};
using Comp = Computation*;
using Comps = std::vector<Computation*>;
using Slices = std::vector<SliceDim>;
using Padding = std::vector<PadDim>;
using Win = std::vector<WindowDim>;
using ConvDims = ConvDimensionNumbers;
using ShapeText = Shape;
#define WORDS(kind, ...) using kind = kiln::kind;
#include "compiler/hlo/attribute_words.def"
}  // namespace attr

struct Attributes {
#define ATTR(field, kind, text) std::optional<attr::kind> field;
#include "compiler/hlo/attributes.def"
  bool operator==(const Attributes&) const = default;
};

// Text of one attribute value in HLO syntax.
std::string AttrText(const attr::Ints& v);
std::string AttrText(attr::Int v);
std::string AttrText(attr::Num v);
std::string AttrText(attr::Bool v);
std::string AttrText(const attr::Raw& v);
std::string AttrText(const attr::Str& v);
std::string AttrText(const attr::Slices& v);
std::string AttrText(const attr::Padding& v);
std::string AttrText(const attr::Win& v);
std::string AttrText(const attr::ConvDims& v);
std::string AttrText(const Shape& v);

// Quotes with HLO's escapes.
std::string QuoteHlo(absl::string_view text);

}  // namespace kiln
