// Operations on blocks that do not verify.

func.func @f() {
  // expected-error@+1 {{a grid has axes 0, 1 and 2}}
  %0 = tile.program_id 3
  return
}

// -----

func.func @f() {
  // expected-error@+1 {{iota has size 1 along the other axes}}
  %0 = tile.iota 1 : vector<4x8xi32>
  return
}

// -----

func.func @f() {
  // expected-error@+1 {{a block has powers of two, not 6}}
  %0 = tile.iota 1 : vector<1x6xi32>
  return
}

// -----

func.func @f() {
  // expected-error@+1 {{axis 2 of a block of rank 2}}
  %0 = tile.iota 2 : vector<1x8xi32>
  return
}

// -----

func.func @f(%x: f32) {
  // expected-error@+1 {{splat keeps the element type of a scalar}}
  %0 = tile.splat %x : f32 -> vector<8xi32>
  return
}

// -----

func.func @f(%x: vector<2x8xf32>) {
  // expected-error@+1 {{broadcast repeats along axes of size 1 only}}
  %0 = tile.broadcast %x : vector<2x8xf32> -> vector<4x8xf32>
  return
}

// -----

func.func @f(%x: vector<8xf32>) {
  // expected-error@+1 {{expand_dims adds one axis of size 1}}
  %0 = tile.expand_dims %x axis 1 : vector<8xf32> -> vector<1x8xf32>
  return
}

// -----

func.func @f(%A: memref<?xf32>, %p: vector<8xi32>) {
  // expected-error@+1 {{a load gives one element for each offset}}
  %0 = tile.load %A[%p] : memref<?xf32>, vector<8xi32> -> vector<4xf32>
  return
}

// -----

func.func @f(%A: memref<?xf32>, %p: vector<8xi32>, %m: vector<4xi1>) {
  // expected-error@+1 {{a mask has a truth value for each offset}}
  %0 = tile.load %A[%p] : memref<?xf32>, vector<8xi32> -> vector<8xf32> if %m : vector<4xi1>
  return
}

// -----

func.func @f(%A: memref<?xf32>, %p: vector<8xf32>) {
  // expected-error@+1 {{offsets are i32 or i64}}
  %0 = tile.load %A[%p] : memref<?xf32>, vector<8xf32> -> vector<8xf32>
  return
}

// -----

func.func @f(%A: memref<?xf32>, %p: vector<8xi32>, %v: vector<8xf64>) {
  // expected-error@+1 {{a store puts one element at each offset}}
  tile.store %v, %A[%p] : vector<8xf64>, memref<?xf32>, vector<8xi32>
  return
}

// -----

func.func @f(%A: memref<?xf32>, %p: vector<8xi32>, %v: f32) {
  // expected-error@+1 {{a store puts one element at each offset}}
  tile.atomic_add %v, %A[%p] : f32, memref<?xf32>, vector<8xi32>
  return
}

// -----

func.func @f(%x: vector<4x8xf32>) {
  // expected-error@+1 {{reduces by add, or, min, max, not mul}}
  %0 = tile.reduce mul %x axis 1 : vector<4x8xf32> -> vector<4x1xf32>
  return
}

// -----

func.func @f(%x: vector<4x8xf32>) {
  // expected-error@+1 {{the result is vector<4xf32>, not vector<4x1xf32>}}
  %0 = tile.reduce add %x axis 1 : vector<4x8xf32> -> vector<4xf32>
  return
}

// -----

func.func @f(%a: vector<16x32xf16>, %b: vector<16x32xf16>, %c: vector<16x32xf32>) {
  // expected-error@+1 {{dot of (16, 32) and (16, 32) onto (16, 32)}}
  %0 = tile.dot %a, %b, %c : vector<16x32xf16>, vector<16x32xf16>, vector<16x32xf32> -> vector<16x32xf32>
  return
}

// -----

func.func @f(%a: vector<16x32xf16>) {
  // expected-error@+1 {{trans swaps the axes of a matrix}}
  %0 = tile.trans %a : vector<16x32xf16> -> vector<16x32xf16>
  return
}

// -----

func.func @f(%a: vector<8xf32>) {
  // expected-error@+1 {{there is no predicate slt of vector<8xf32>}}
  %0 = tile.compare slt, %a, %a : vector<8xf32>
  return
}

// -----

func.func @f(%a: vector<8xf32>) {
  // expected-error@+1 {{extui has no part of type f32}}
  %0 = tile.cast extui %a : vector<8xf32> -> vector<8xi32>
  return
}

// -----

func.func @f(%a: vector<8xi8>) {
  // expected-error@+1 {{a cast keeps the shape}}
  %0 = tile.cast extui %a : vector<8xi8> -> vector<4xi32>
  return
}
