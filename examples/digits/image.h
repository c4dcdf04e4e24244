// Reads an 8 x 8 PGM image (P2 or P5, any maximum) into 64 values of 0 to 16.
#pragma once

#include <cctype>
#include <cstdio>
#include <string>

inline bool ReadImage(const char* path, float* pixels, std::string* error) {
  FILE* f = std::fopen(path, "rb");
  if (!f) {
    *error = "cannot open";
    return false;
  }
  auto number = [&]() -> int {
    int c = std::fgetc(f);
    while (c == '#' || std::isspace(c)) {
      if (c == '#')
        while (c != '\n' && c != EOF) c = std::fgetc(f);
      c = std::fgetc(f);
    }
    int v = -1;
    for (; std::isdigit(c) && v < 100000; c = std::fgetc(f)) v = (v < 0 ? 0 : v) * 10 + c - '0';
    return v;
  };
  const int p = std::fgetc(f), kind = std::fgetc(f);
  const int width = number(), height = number(), most = number();
  bool ok = p == 'P' && (kind == '2' || kind == '5') && width == 8 && height == 8 && most > 0 && most < 256;
  if (!ok) *error = "not an 8 x 8 PGM image with at most 255 grey levels";
  for (int k = 0; ok && k < 64; ++k) {
    const int v = kind == '2' ? number() : std::fgetc(f);
    if (v < 0 || v > most) {
      *error = "the pixels are cut off or out of range";
      ok = false;
    }
    pixels[k] = 16.0f * static_cast<float>(v) / static_cast<float>(most);
  }
  std::fclose(f);
  return ok;
}
