// What one step of packed_lstm.py does to each element, in one pass: the gates and the cell, their
// gradients, and the largest dropped state of a sentence. The equations, their factors and the
// order of the numbers are told there. `first`: rows of the step; `h`: units in each direction.
#include <cstdint>
#include <cstring>

namespace {

using bf16 = uint16_t;

template <class To, class From>
inline To bits(From value) {
  To same;
  std::memcpy(&same, &value, 4);
  return same;
}

inline float read(float value) { return value; }
inline float read(bf16 value) { return bits<float>(uint32_t(value) << 16); }
inline void write(float* place, float value) { *place = value; }
inline void write(bf16* place, float value) {  // to the nearest, ties to even; NaN stays NaN
  uint32_t whole = bits<uint32_t>(value);
  *place = bf16(value == value ? (whole + 0x7fff + ((whole >> 16) & 1)) >> 16 : 0x7fc0);
}

// 1 / (1 + exp(-x)) to some 1e-7: exp by Cephes' polynomial on [-ln 2 / 2, ln 2 / 2].
inline float logistic(float x) {
  float y = x > 87.f ? -87.f : (x < -87.f ? 87.f : -x);
  float shifted = y * 1.44269504f + 12582912.f;  // the power of two in the lowest bits
  uint32_t power = bits<uint32_t>(shifted) << 23;
  float n = shifted - 12582912.f;
  float r = y - n * 0.693359375f + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.f;
  return 1.f / (1.f + bits<float>(bits<uint32_t>(p) + power)) + 0.f * y;  // the last: NaN stays NaN
}

// before: 2c of the step before, null at the first. room: where h goes for the `next` rows that
// have a further token, `row` and `half` elements apart.
template <class T>
void ahead(int64_t n, int64_t h, const T* products, float* gates, const float* before,
           float* cells, float* states, T* room, int64_t row, int64_t half, int64_t next) {
  for (int64_t k = 0; k < 2 * n; ++k) {
    const T* a = products + k * 4 * h;
    float* s = gates + k * 4 * h;
    float* c = cells + k * h;
    float* out = states + k * h;
    const float* b = before ? before + k * h : c;
    float old = before ? 1.f : 0.f;
    if (!before) std::memset(c, 0, h * sizeof(float));
#pragma GCC ivdep
    for (int64_t j = 0; j < h; ++j) {
      float i = logistic(read(a[j])), f = logistic(read(a[h + j]));
      float g = logistic(read(a[2 * h + j])), o = logistic(read(a[3 * h + j]));
      float kept = old * f * b[j] + i * (4.f * g - 2.f);
      s[j] = i, s[h + j] = f, s[2 * h + j] = g, s[3 * h + j] = o;
      c[j] = kept;
      out[j] = o * (2.f * logistic(kept) - 1.f);
    }
    if (k < 2 * next) {
      T* to = room + (k / 2) * row + (k % 2) * half;
#pragma GCC ivdep
      for (int64_t j = 0; j < h; ++j) write(to + j, out[j]);
    }
  }
}

// later: dL/dh of the step after through its products, for its `after` rows. carry: dL/dc.
template <class T>
void back(int64_t n, int64_t h, const float* gradient, const T* later, int64_t row, int64_t half,
          int64_t after, const float* gates, const float* before, const float* cells, float* carry,
          T* delta) {
  for (int64_t k = 0; k < 2 * n; ++k) {
    const float *s = gates + k * 4 * h, *c = cells + k * h, *up = gradient + k * h;
    const float* b = before ? before + k * h : c;
    float old = before ? 1.f : 0.f;
    const T* from = k < 2 * after ? later + (k / 2) * row + (k % 2) * half : nullptr;
    float* kept = carry + k * h;
    T* out = delta + k * 4 * h;
#pragma GCC ivdep
    for (int64_t j = 0; j < h; ++j) {
      float i = s[j], f = s[h + j], g = s[2 * h + j], o = s[3 * h + j];
      float q = up[j] + (from ? read(from[j]) : 0.f);
      float bounded = 2.f * logistic(c[j]) - 1.f;
      float m = kept[j] + q * o * (1.f - bounded * bounded);
      write(out + j, m * (g - .5f) * i * (1.f - i));
      write(out + h + j, old * m * b[j] * f * (1.f - f));
      write(out + 2 * h + j, m * i * g * (1.f - g));
      write(out + 3 * h + j, q * bounded * o * (1.f - o));
      kept[j] = m * f;
    }
  }
}

}  // namespace

extern "C" {

#define STEPS(T, type)                                                                            \
  void forward_##type(int64_t n, int64_t h, T* products, float* gates, float* before,             \
                      float* cells, float* states, T* room, int64_t row, int64_t half,            \
                      int64_t next) {                                                             \
    ahead(n, h, products, gates, before, cells, states, room, row, half, next);                   \
  }                                                                                               \
  void backward_##type(int64_t n, int64_t h, float* gradient, T* later, int64_t row,              \
                       int64_t half, int64_t after, float* gates, float* before, float* cells,    \
                       float* carry, T* delta) {                                                  \
    back(n, h, gradient, later, row, half, after, gates, before, cells, carry, delta);            \
  }
STEPS(float, float32)
STEPS(bf16, bfloat16)

// states: packed `[P, d]`, of which those whose `drawn` is below `cut` count as 0.
void largest(int64_t steps, const int64_t* counts, int64_t d, const float* states,
             const int16_t* drawn, int32_t cut, float* best) {
  for (int64_t t = 0; t < steps; ++t)
    for (int64_t r = 0; r < counts[t]; ++r, states += d, drawn += d) {
      float* b = best + r * d;
#pragma GCC ivdep
      for (int64_t j = 0; j < d; ++j) {
        float value = drawn[j] >= cut ? states[j] : states[j] * 0.f;
        b[j] = (value > b[j]) | (value != value) ? value : b[j];
      }
    }
}

// result: the gradient of each state, not yet divided by the number of `ties` for the largest.
void largest_backward(int64_t steps, const int64_t* counts, int64_t d, const float* states,
                      const int16_t* drawn, int32_t cut, const float* best,
                      const float* gradient, float* ties, float* result) {
  for (int64_t t = 0; t < steps; ++t)
    for (int64_t r = 0; r < counts[t]; ++r, states += d, drawn += d, result += d) {
      const float *b = best + r * d, *g = gradient + r * d;
      float* tie = ties + r * d;
#pragma GCC ivdep
      for (int64_t j = 0; j < d; ++j) {
        bool is = (drawn[j] >= cut) & (states[j] == b[j]);
        tie[j] += is ? 1.f : 0.f;
        result[j] = is ? g[j] : 0.f;
      }
    }
}
}
