// The devices of a program as a grid of axes, and how arrays are cut along them.
//
// What: device numbers in mixed radix; each digit is an axis of prime size. A tiling lists, for each dimension of an
//   array, the axes that cut it, the slowest first; devices that differ only in other axes hold the same tile.
// Why: to move one axis is to gather, slice, exchange or reduce over it; groups and offsets follow from digits,
// whatever
//   order of devices a sharding is written in.
// Guarantees: an axis cuts an array at most once. Shardings that no axes express (devices in no order of a grid) are
//   answered with nothing, and their callers keep the written form.
#pragma once

#include <optional>

#include "compiler/sharding/tile_sharding.h"

namespace kiln {

using Axes = std::vector<int>;
using AxisMask = uint32_t;

struct Tiling {
  std::vector<Axes> dims;
  AxisMask manual = 0;  // axes along which the value is written for each device

  bool operator==(const Tiling&) const = default;
  bool IsWhole() const;
  AxisMask Used() const;
};
AxisMask MaskOf(const Axes& axes);

class DeviceMesh {
 public:
  DeviceMesh() = default;
  // Of the order of prime factors that expresses most of `shardings`. Devices are 0, 1, ..., unless all shardings list
  // as many others.
  static DeviceMesh Fit(int64_t devices, const std::vector<TileSharding>& shardings);

  int64_t devices() const { return devices_; }
  int axis_count() const { return static_cast<int>(sizes_.size()); }
  int64_t size(int axis) const { return sizes_[static_cast<size_t>(axis)]; }
  int64_t stride(int axis) const { return strides_[static_cast<size_t>(axis)]; }
  int64_t SizeOf(const Axes& axes) const;
  AxisMask all_axes() const { return (AxisMask{1} << sizes_.size()) - 1; }
  int64_t Digit(int64_t device, int axis) const { return device / stride(axis) % size(axis); }
  // The number that the device's digits on `axes` make, the first the most significant.
  int64_t PlaceOn(int64_t device, const Axes& axes) const;

  // Nothing where axes do not express it; `rank` is the array's.
  std::optional<Tiling> Express(const TileSharding& s, int64_t rank) const;
  // HLO's text of it.
  std::string TextOf(const Tiling& t) const;
  // The same, as a written sharding.
  TileSharding Written(const Tiling& t) const;

  // Devices that differ in `axes` alone, each group in the order of their places; a list for each group.
  std::vector<Ints> Groups(const Axes& axes) const;

 private:
  void SetAxes(const Ints& sizes);
  std::string IotaText(const Tiling& t) const;

  int64_t devices_ = 1;
  Ints sizes_, strides_;
  Ints names_;  // of devices in ascending order, where they are not 0, 1, ...
};

// Extents of one device's part.
Ints LocalDims(const DeviceMesh& mesh, const Ints& dims, const Tiling& t);
Shape LocalShape(const DeviceMesh& mesh, const Shape& array, const Tiling& t);
// Every dimension is a multiple of its tiles.
bool CutsEvenly(const DeviceMesh& mesh, const Ints& dims, const Tiling& t);

}  // namespace kiln
