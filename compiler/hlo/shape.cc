#include "compiler/hlo/shape.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace kiln {

std::vector<Shape> ArrayLeaves(const Shape& shape) {
  std::vector<Shape> out;
  ForEachLeaf(shape, [&](const ShapeIndex&, const Shape& leaf) {
    if (leaf.IsArray()) out.push_back(leaf);
  });
  return out;
}

int64_t Product(const Ints& v) {
  int64_t n = 1;
  for (int64_t d : v) n *= d;
  return n;
}

std::string Layout::ToString() const {
  return absl::StrCat("{", absl::StrJoin(minor_to_major, ","), extras.empty() ? "" : ":", extras, "}");
}

Layout Layout::Descending(int64_t rank) {
  Layout l;
  for (int64_t i = rank - 1; i >= 0; --i) l.minor_to_major.push_back(i);
  return l;
}

bool Shape::HasDynamic() const {
  for (bool d : dynamic_)
    if (d) return true;
  for (const Shape& s : tuple_)
    if (s.HasDynamic()) return true;
  return false;
}

void Shape::SetDefaultLayouts() {
  if (IsTuple()) {
    for (Shape& s : tuple_) s.SetDefaultLayouts();
  } else if (IsArray()) {
    layout_ = Layout::Descending(rank());
  }
}

void Shape::ClearLayouts() {
  layout_.reset();
  for (Shape& s : tuple_) s.ClearLayouts();
}

int64_t Shape::ElementCount() const { return IsTuple() ? 0 : Product(dims_); }

int64_t Layout::MemorySpace() const {
  const size_t at = extras.find("S(");
  int64_t n = 0;
  if (at == std::string::npos || !absl::SimpleAtoi(extras.substr(at + 2, extras.find(')', at) - at - 2), &n)) return 0;
  return n;
}

int64_t Shape::ByteSize() const {
  if (IsTuple()) {
    int64_t n = 0;
    for (const Shape& s : tuple_) n += s.ByteSize();
    return n;
  }
  return IsArray() ? ElementCount() * ByteWidth(type_) : 0;
}

Ints Shape::Strides() const {
  Ints strides(dims_.size(), 1);
  int64_t step = 1;
  for (int64_t d : LayoutOrDefault().minor_to_major) {
    strides[d] = step;
    step *= dims_[d];
  }
  return strides;
}

bool Shape::Compatible(const Shape& o) const {
  if (type_ != o.type_ || dims_ != o.dims_ || tuple_.size() != o.tuple_.size()) return false;
  for (size_t i = 0; i < tuple_.size(); ++i)
    if (!tuple_[i].Compatible(o.tuple_[i])) return false;
  return true;
}

bool Shape::CompatibleIgnoringType(const Shape& o) const {
  if (IsTuple() != o.IsTuple()) return false;
  if (!IsTuple()) return dims_ == o.dims_;
  if (tuple_.size() != o.tuple_.size()) return false;
  for (size_t i = 0; i < tuple_.size(); ++i)
    if (!tuple_[i].CompatibleIgnoringType(o.tuple_[i])) return false;
  return true;
}

bool Shape::operator==(const Shape& o) const {
  if (type_ != o.type_ || dims_ != o.dims_ || tuple_.size() != o.tuple_.size() || layout_ != o.layout_) return false;
  for (int64_t d = 0; d < rank(); ++d)
    if (is_dynamic(d) != o.is_dynamic(d)) return false;
  for (size_t i = 0; i < tuple_.size(); ++i)
    if (tuple_[i] != o.tuple_[i]) return false;
  return true;
}

std::string Shape::ToString(bool with_layout) const {
  if (IsTuple()) {
    std::string out = "(";
    for (size_t i = 0; i < tuple_.size(); ++i) {
      if (i) absl::StrAppend(&out, ", ");
      if (i && i % 5 == 0) absl::StrAppend(&out, "/*index=", i, "*/");
      absl::StrAppend(&out, tuple_[i].ToString(with_layout));
    }
    return out + ")";
  }
  if (type_ == PrimitiveType::Buffer && !tuple_.empty())
    return absl::StrCat("b(", tuple_[0].ToString(with_layout), ")");
  std::string out(TextOf(type_));
  out += "[";
  for (int64_t i = 0; i < rank(); ++i) {
    if (i) out += ",";
    if (is_dynamic(i)) out += dims_[i] < 0 ? "?" : "<=";
    if (dims_[i] >= 0) absl::StrAppend(&out, dims_[i]);
  }
  out += "]";
  if (with_layout && layout_ && (rank() > 0 || !layout_->extras.empty())) out += layout_->ToString();
  return out;
}

const Shape* PartAt(const Shape& shape, const ShapeIndex& index) {
  const Shape* p = &shape;
  for (int64_t k : index) {
    if (!p->IsTuple() || k < 0 || k >= static_cast<int64_t>(p->tuple().size())) return nullptr;
    p = &p->tuple()[static_cast<size_t>(k)];
  }
  return p;
}

}  // namespace kiln
