"""The shaders (WGSL) of the workloads without PyTorch, one for each.

``T`` stands for the numbers' type. Each dispatch adds one to ``done``, so that a dispatch that a
driver dropped is noticed.
"""

from __future__ import annotations

from gpu_studio.core.race import gray_scott

TILE = 64
"""The side of the square of products that one group of a matrix product computes."""
GROUP = 256

_COUNTED = """
@group(0) @binding(0) var<storage, read_write> done: array<u32>;

fn count(id: vec3<u32>) {
  if (id.x == 0u && id.y == 0u) { done[0] = done[0] + 1u; }
}
"""
# The place of a number in a grid of groups that may need its second dimension.
_PLACE = """
fn place(id: vec3<u32>, groups: vec3<u32>) -> u32 { return id.y * groups.x * 256u + id.x; }
"""

COPY = (
    _COUNTED
    + _PLACE
    + """
@group(0) @binding(1) var<storage, read> source: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> result: array<vec4<u32>>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  count(id);
  let i = place(id, groups);
  if (i < arrayLength(&source)) { result[i] = source[i]; }
}
"""
)

# The ten statements of the workload, which a compiler makes one pass.
ELEMENTWISE = (
    _COUNTED
    + _PLACE
    + """
@group(0) @binding(1) var<storage, read> left: array<vec4<T>>;
@group(0) @binding(2) var<storage, read> right: array<vec4<T>>;
@group(0) @binding(3) var<storage, read> third: array<vec4<T>>;
@group(0) @binding(4) var<storage, read_write> result: array<vec4<T>>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  count(id);
  let i = place(id, groups);
  if (i >= arrayLength(&left)) { return; }
  let a = left[i];
  let b = right[i];
  let c = third[i];
  let y2 = (a + b + c) * a;
  let y4 = y2 + (y2 - b);
  result[i] = y4 + (T(0.33) * a + T(0.66) * b + c * T(0.9));
}
"""
)

LAUNCH = (
    _COUNTED
    + """
@group(0) @binding(1) var<storage, read_write> result: array<T>;

@compute @workgroup_size(1)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  count(id);
  result[0] = -result[0];
}
"""
)

# Squares of 64 × 64 products; each of the 256 threads computes 4 × 4 of them. Sums are float32.
MATMUL = (
    _COUNTED
    + """
@group(0) @binding(1) var<storage, read> left: array<T>;
@group(0) @binding(2) var<storage, read> right: array<T>;
@group(0) @binding(3) var<storage, read_write> result: array<T>;
const SIDE = SIZEu;
var<workgroup> rows: array<f32, 1024>;
var<workgroup> columns: array<f32, 1024>;

@compute @workgroup_size(16, 16)
fn main(
  @builtin(global_invocation_id) id: vec3<u32>,
  @builtin(workgroup_id) tile: vec3<u32>,
  @builtin(local_invocation_id) lane: vec3<u32>,
) {
  count(id);
  let thread = lane.y * 16u + lane.x;
  var sums: array<vec4<f32>, 4>;
  for (var k = 0u; k < SIDE; k += 16u) {
    for (var part = 0u; part < 4u; part++) {
      let i = part * 256u + thread;
      rows[(i % 16u) * 64u + i / 16u] = f32(left[(tile.y * 64u + i / 16u) * SIDE + k + i % 16u]);
      columns[i] = f32(right[(k + i / 64u) * SIDE + tile.x * 64u + i % 64u]);
    }
    workgroupBarrier();
    for (var j = 0u; j < 16u; j++) {
      let at = j * 64u + lane.x * 4u;
      let four = vec4<f32>(columns[at], columns[at + 1u], columns[at + 2u], columns[at + 3u]);
      let row = j * 64u + lane.y * 4u;
      sums[0] += rows[row] * four;
      sums[1] += rows[row + 1u] * four;
      sums[2] += rows[row + 2u] * four;
      sums[3] += rows[row + 3u] * four;
    }
    workgroupBarrier();
  }
  for (var y = 0u; y < 4u; y++) {
    let at = (tile.y * 64u + lane.y * 4u + y) * SIDE + tile.x * 64u + lane.x * 4u;
    result[at] = T(sums[y].x);
    result[at + 1u] = T(sums[y].y);
    result[at + 2u] = T(sums[y].z);
    result[at + 3u] = T(sums[y].w);
  }
}
"""
)


_PATTERN = (
    _PLACE
    + """
// The kind, the place of the first word, the seed, and the bits to turn round.
@group(0) @binding(1) var<storage, read> what: array<u32>;

fn pattern(i: u32) -> u32 {
  var word = i + what[1];
  if (what[0] == 1u) {
    word += what[2] * 2654435761u;
    word = (word ^ (word >> 16u)) * 0x7feb352du;
    word = (word ^ (word >> 15u)) * 0x846ca68bu;
    word = word ^ (word >> 16u);
  } else if (what[0] == 2u) {
    word = 1u << ((word + (word >> 5u) + what[2]) & 31u);
  }
  return word ^ what[3];
}
"""
)
PATTERN_WRITE = (
    _COUNTED
    + _PATTERN
    + """
@group(0) @binding(2) var<storage, read_write> words: array<u32>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  count(id);
  let i = place(id, groups);
  if (i < arrayLength(&words)) { words[i] = pattern(i); }
}
"""
)
PATTERN_READ = (
    _COUNTED
    + _PATTERN
    + """
@group(0) @binding(2) var<storage, read> words: array<u32>;
@group(0) @binding(3) var<storage, read_write> wrong: array<atomic<u32>>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  count(id);
  let i = place(id, groups);
  if (i < arrayLength(&words) && words[i] != pattern(i)) { atomicAdd(&wrong[0], 1u); }
}
"""
)


# Both substances of a cell; each thread makes one, and the picture has no edges.
_GROW = (
    _COUNTED
    + """
@group(0) @binding(1) var<storage, read> now: array<vec2<f32>>;
@group(0) @binding(2) var<storage, read_write> next: array<vec2<f32>>;

@compute @workgroup_size(16, 16)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  count(id);
  if (id.x >= WIDTHu || id.y >= HEIGHTu) { return; }
  let up = ((id.y + HEIGHTu - 1u) % HEIGHTu) * WIDTHu;
  let down = ((id.y + 1u) % HEIGHTu) * WIDTHu;
  let row = id.y * WIDTHu;
  let left = (id.x + WIDTHu - 1u) % WIDTHu;
  let right = (id.x + 1u) % WIDTHu;
  let cell = now[row + id.x];
  let around = now[up + id.x] + now[down + id.x] + now[row + left] + now[row + right] - 4.0 * cell;
  let reaction = cell.x * cell.y * cell.y;
  let u = cell.x + (SPREAD_U * around.x - reaction + FEED * (1.0 - cell.x));
  let v = cell.y + (SPREAD_V * around.y + reaction - KILLED * cell.y);
  next[row + id.x] = vec2<f32>(u, v);
}
"""
)


def grow(width: int, height: int) -> str:
    """Return the shader of a step of the growing pattern."""
    numbers = {
        "WIDTH": str(width), "HEIGHT": str(height), "SPREAD_U": f"{gray_scott.SPREAD_U}",
        "SPREAD_V": f"{gray_scott.SPREAD_V}", "KILLED": f"{gray_scott.FEED + gray_scott.KILL}",
        "FEED": f"{gray_scott.FEED}",
    }  # fmt: skip
    code = _GROW
    for name, number in numbers.items():
        code = code.replace(name, number)
    return code


def shader(text: str, dtype: str, size: int = 0) -> str:
    """Return a shader for numbers of a type.

    Args:
        text: one of those above.
        dtype: ``float32`` or ``float16``.
        size: the side of the matrices, a multiple of `TILE`; 0 where a shader has none.
    """
    short = {"float32": "f32", "float16": "f16"}[dtype]
    typed = text.replace("<T>", f"<{short}>").replace("T(", f"{short}(")
    typed = typed.replace("SIZEu", f"{size}u")
    return f"enable f16;\n{typed}" if dtype == "float16" else typed
