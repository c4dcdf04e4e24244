#include <algorithm>

#include "absl/strings/ascii.h"
#include "compiler/hlo/hlo_parser.h"

namespace kiln {

absl::StatusOr<Shape> HloParser::ParseShape(int depth) {
  if (depth > limits_.nesting) return s_.Error(absl::StrCat("tuples nest deeper than ", limits_.nesting));
  if (s_.Eat("(")) {
    std::vector<Shape> elements;
    while (!s_.Eat(")")) {
      if (!elements.empty()) RETURN_IF_ERROR(s_.Expect(","));
      ASSIGN_OR_RETURN(Shape e, ParseShape(depth + 1));
      elements.push_back(std::move(e));
    }
    return Shape::Tuple(std::move(elements));
  }
  const absl::string_view word = s_.PeekWord("_");
  if (word == "b" && s_.PeekRaw(1) == '(') {  // a reference to the memory of an array
    s_.Word("_");
    RETURN_IF_ERROR(s_.Expect("("));
    ASSIGN_OR_RETURN(Shape array, ParseShape(depth + 1));
    if (!array.IsArray()) return s_.Error("a buffer holds one array");
    RETURN_IF_ERROR(s_.Expect(")"));
    Shape buffer = Shape::Tuple({std::move(array)});
    buffer.set_type(PrimitiveType::Buffer);
    return buffer;
  }
  auto type = TypeFromText(word);
  if (!type) return s_.Error(absl::StrCat("'", word, "' is not an element type"));
  s_.Word("_");
  RETURN_IF_ERROR(s_.Expect("["));
  Ints dims;
  std::vector<bool> dynamic;
  while (!s_.Eat("]")) {
    if (!dims.empty()) RETURN_IF_ERROR(s_.Expect(","));
    if (s_.Eat("?")) {
      dims.push_back(-1);
      dynamic.push_back(true);
      continue;
    }
    dynamic.push_back(s_.Eat("<="));
    const size_t at = (s_.Peek(), s_.pos());
    ASSIGN_OR_RETURN(int64_t d, s_.Integer());
    if (d < 0) return s_.ErrorAtPos(at, absl::StrCat("negative extent ", d));
    dims.push_back(d);
  }
  int64_t n = 1;
  for (int64_t d : dims) {
    if (d > 0 && n > limits_.elements / d) return s_.Error(absl::StrCat("more than ", limits_.elements, " elements"));
    n *= std::max<int64_t>(d, 0);
  }
  Shape shape = Shape::Array(*type, std::move(dims));
  if (!shape.IsArray() && shape.rank() > 0) return s_.Error(absl::StrCat("a ", TextOf(*type), " has no extents"));
  for (size_t i = 0; i < dynamic.size(); ++i) shape.set_dynamic(static_cast<int64_t>(i), dynamic[i]);
  const size_t behind = s_.pos();
  if (s_.PeekRaw() != '{' && s_.Peek() == '{') {  // apart from its shape a layout is digits
    const size_t close = s_.text().find('}', s_.pos());
    const absl::string_view inside = s_.text().substr(s_.pos() + 1, close - s_.pos() - 1);
    if (close == absl::string_view::npos || inside.empty() ||
        inside.find_first_not_of("0123456789, ") != absl::string_view::npos)
      s_.set_pos(behind);
  } else {
    s_.set_pos(behind);
  }
  if (s_.PeekRaw() == '{') {
    // A layout, unless a computation's body opens here.
    const size_t save = s_.pos();
    s_.set_pos(save + 1);
    const char next = s_.Peek();
    if (!absl::ascii_isdigit(next) && next != '}' && next != ':') {
      s_.set_pos(save);
      return shape;
    }
    Layout l;
    while (s_.Peek() != '}' && s_.Peek() != ':') {
      if (!l.minor_to_major.empty()) RETURN_IF_ERROR(s_.Expect(","));
      ASSIGN_OR_RETURN(int64_t d, s_.Integer());
      l.minor_to_major.push_back(d);
    }
    if (s_.Eat(":")) {
      ASSIGN_OR_RETURN(l.extras, s_.Balanced("}"));
    }
    RETURN_IF_ERROR(s_.Expect("}"));
    std::vector<bool> seen(shape.rank(), false);
    bool ok = static_cast<int64_t>(l.minor_to_major.size()) == shape.rank();
    for (int64_t d : l.minor_to_major) {
      ok = ok && d >= 0 && d < shape.rank() && !seen[d];
      if (ok) seen[d] = true;
    }
    if (!ok)
      return s_.ErrorAtPos(save,
                           absl::StrCat("layout ", l.ToString(), " is no order of ", shape.rank(), " dimensions"));
    if (shape.rank() > 0 || !l.extras.empty()) shape.set_layout(std::move(l));
  }
  return shape;
}

}  // namespace kiln
