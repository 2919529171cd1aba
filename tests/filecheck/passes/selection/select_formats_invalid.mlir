// RUN: sparsecc opt %s -p 'select-formats{strategy=fastest}'
// expected-error {{there is no strategy 'fastest'}}
func.func @f(%x: tensor<4xf64>) -> tensor<4xf64> {
  return %x : tensor<4xf64>
}

// -----

// RUN: sparsecc opt %s -p 'select-formats{stratgy=inferred}'
// expected-error {{pass select-formats has no option 'stratgy'}}
func.func @f(%x: tensor<4xf64>) -> tensor<4xf64> {
  return %x : tensor<4xf64>
}

// -----

// RUN: sparsecc opt %s -p 'select-formats{strategy}'
// expected-error {{can't be read at 'strategy'}}
func.func @f(%x: tensor<4xf64>) -> tensor<4xf64> {
  return %x : tensor<4xf64>
}

// -----

// RUN: sparsecc opt %s -p 'select-formats{strategy=roofline calls=-1}'
// expected-error {{calls is '-1', but it is a number of calls, above 0}}
func.func @f(%A: tensor<4x4xf64, #sparse_tensor.encoding<*>>, %x: tensor<4xf64>, %z: tensor<4xf64>) -> tensor<4xf64> {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
    ins(%A, %x : tensor<4x4xf64, #sparse_tensor.encoding<*>>, tensor<4xf64>) outs(%z : tensor<4xf64>) {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %c, %p : f64
    linalg.yield %s : f64
  } -> tensor<4xf64>
  return %y : tensor<4xf64>
}

// -----

// RUN: sparsecc opt %s -p 'select-formats{strategy=roofline sizes=m=16}'
// expected-error {{sizes is 'm=16', but it names extents, as in m:16;n:32}}
func.func @f(%A: tensor<4x4xf64, #sparse_tensor.encoding<*>>, %x: tensor<4xf64>, %z: tensor<4xf64>) -> tensor<4xf64> {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
    ins(%A, %x : tensor<4x4xf64, #sparse_tensor.encoding<*>>, tensor<4xf64>) outs(%z : tensor<4xf64>) {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %c, %p : f64
    linalg.yield %s : f64
  } -> tensor<4xf64>
  return %y : tensor<4xf64>
}

// -----

// RUN: sparsecc opt %s -p 'select-formats{strategy=fixed sizes=k:16}'
// expected-error {{sizes names the index 'k', which no expression has}}
func.func @f(%A: tensor<4x4xf64, #sparse_tensor.encoding<*>>, %x: tensor<4xf64>, %z: tensor<4xf64>) -> tensor<4xf64> {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
    ins(%A, %x : tensor<4x4xf64, #sparse_tensor.encoding<*>>, tensor<4xf64>) outs(%z : tensor<4xf64>) {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %c, %p : f64
    linalg.yield %s : f64
  } -> tensor<4xf64>
  return %y : tensor<4xf64>
}

// -----

// RUN: sparsecc opt %s -p 'select-formats{strategy=fixed sizes=d1:16}'
// expected-error {{sizes says that index 'd1' is 16, but it is 4 in A[d0,d1]}}
func.func @f(%A: tensor<4x4xf64, #sparse_tensor.encoding<*>>, %x: tensor<4xf64>, %z: tensor<4xf64>) -> tensor<4xf64> {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
    ins(%A, %x : tensor<4x4xf64, #sparse_tensor.encoding<*>>, tensor<4xf64>) outs(%z : tensor<4xf64>) {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %c, %p : f64
    linalg.yield %s : f64
  } -> tensor<4xf64>
  return %y : tensor<4xf64>
}

// -----

// RUN: sparsecc opt %s -p 'select-formats{strategy=fixed target=sm_42}'
// expected-error {{there is no target 'sm_42'}}
func.func @f(%A: tensor<4x4xf64, #sparse_tensor.encoding<*>>, %x: tensor<4xf64>, %z: tensor<4xf64>) -> tensor<4xf64> {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
    ins(%A, %x : tensor<4x4xf64, #sparse_tensor.encoding<*>>, tensor<4xf64>) outs(%z : tensor<4xf64>) {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %c, %p : f64
    linalg.yield %s : f64
  } -> tensor<4xf64>
  return %y : tensor<4xf64>
}

// -----

// RUN: sparsecc opt %s -p 'select-formats{strategy=tests.unit.selections:Broken}'
// expected-error {{strategy 'broken' fails: ZeroDivisionError: no rate is known}}
func.func @f(%A: tensor<4x4xf64, #sparse_tensor.encoding<*>>, %x: tensor<4xf64>, %z: tensor<4xf64>) -> tensor<4xf64> {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
    ins(%A, %x : tensor<4x4xf64, #sparse_tensor.encoding<*>>, tensor<4xf64>) outs(%z : tensor<4xf64>) {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %c, %p : f64
    linalg.yield %s : f64
  } -> tensor<4xf64>
  return %y : tensor<4xf64>
}

// -----

// RUN: sparsecc opt %s -p 'select-formats{strategy=tests.unit.selections:Nobody}'
// expected-error {{strategy 'tests.unit.selections:Nobody' can't be used: AttributeError: module 'tests.unit.selections' has no attribute 'Nobody'}}
func.func @f(%A: tensor<4x4xf64, #sparse_tensor.encoding<*>>, %x: tensor<4xf64>, %z: tensor<4xf64>) -> tensor<4xf64> {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
    ins(%A, %x : tensor<4x4xf64, #sparse_tensor.encoding<*>>, tensor<4xf64>) outs(%z : tensor<4xf64>) {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %c, %p : f64
    linalg.yield %s : f64
  } -> tensor<4xf64>
  return %y : tensor<4xf64>
}

// -----

// RUN: sparsecc opt %s -p 'select-formats{strategy=tests.unit.selections:Empty}'
// expected-error {{strategy 'empty' can't be used: rank() gives no plan; staying dense is always legal}}
func.func @f(%A: tensor<4x4xf64, #sparse_tensor.encoding<*>>, %x: tensor<4xf64>, %z: tensor<4xf64>) -> tensor<4xf64> {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
    ins(%A, %x : tensor<4x4xf64, #sparse_tensor.encoding<*>>, tensor<4xf64>) outs(%z : tensor<4xf64>) {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %c, %p : f64
    linalg.yield %s : f64
  } -> tensor<4xf64>
  return %y : tensor<4xf64>
}

// -----

// RUN: sparsecc opt %s -p 'select-formats{strategy=tests.unit.selections:Elsewhere}'
// expected-error {{strategy 'elsewhere' gives A=CSR B=CSR by generated, which does not fit the program: there is no tensor 'B'}}
func.func @f(%A: tensor<4x4xf64, #sparse_tensor.encoding<*>>, %x: tensor<4xf64>, %z: tensor<4xf64>) -> tensor<4xf64> {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
    ins(%A, %x : tensor<4x4xf64, #sparse_tensor.encoding<*>>, tensor<4xf64>) outs(%z : tensor<4xf64>) {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %c, %p : f64
    linalg.yield %s : f64
  } -> tensor<4xf64>
  return %y : tensor<4xf64>
}

// -----

// RUN: sparsecc opt %s -p 'select-formats{strategy=tests.unit.selections:Illegal}'
// expected-error {{strategy 'illegal' gives A=2:4 by generated, which is no legal plan of the problem}}
func.func @f(%A: tensor<4x4xf64, #sparse_tensor.encoding<*>>, %x: tensor<4xf64>, %z: tensor<4xf64>) -> tensor<4xf64> {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
    ins(%A, %x : tensor<4x4xf64, #sparse_tensor.encoding<*>>, tensor<4xf64>) outs(%z : tensor<4xf64>) {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %c, %p : f64
    linalg.yield %s : f64
  } -> tensor<4xf64>
  return %y : tensor<4xf64>
}

// -----

// RUN: sparsecc opt %s -p 'select-formats{strategy=fixed}'
// expected-error {{formats are chosen for linalg.generic, not for linalg.matmul}}
func.func @f(%A: tensor<4x4xf64, #sparse_tensor.encoding<*>>, %x: tensor<4xf64>, %z: tensor<4xf64>) -> tensor<4xf64> {
  %w = linalg.matmul ins(%A, %A : tensor<4x4xf64, #sparse_tensor.encoding<*>>, tensor<4x4xf64, #sparse_tensor.encoding<*>>) outs(%A : tensor<4x4xf64, #sparse_tensor.encoding<*>>) -> tensor<4x4xf64, #sparse_tensor.encoding<*>>
  return %z : tensor<4xf64>
}

// -----

// RUN: sparsecc opt %s -p 'select-formats{plan=/nowhere/plan.json}'
// expected-error {{no such file or directory}}
func.func @f(%A: tensor<4x4xf64, #sparse_tensor.encoding<*>>, %x: tensor<4xf64>, %z: tensor<4xf64>) -> tensor<4xf64> {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
    ins(%A, %x : tensor<4x4xf64, #sparse_tensor.encoding<*>>, tensor<4xf64>) outs(%z : tensor<4xf64>) {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %c, %p : f64
    linalg.yield %s : f64
  } -> tensor<4xf64>
  return %y : tensor<4xf64>
}

// -----

// RUN: sparsecc opt %s -p 'select-formats{}'
// expected-error {{sparsecc.statistics is 3, no dictionary}}
func.func @f(%A: tensor<4x4xf64, #sparse_tensor.encoding<*>> {sparsecc.statistics = 3 : i64}, %x: tensor<4xf64>, %z: tensor<4xf64>) -> tensor<4xf64> {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
    ins(%A, %x : tensor<4x4xf64, #sparse_tensor.encoding<*>>, tensor<4xf64>) outs(%z : tensor<4xf64>) {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %c, %p : f64
    linalg.yield %s : f64
  } -> tensor<4xf64>
  return %y : tensor<4xf64>
}

// -----

// RUN: sparsecc opt %s -p 'select-formats{}'
// expected-error {{sparsecc.statistics has to have the entry 'exact'}}
func.func @f(%A: tensor<4x4xf64, #sparse_tensor.encoding<*>> {sparsecc.statistics = {shape = array<i64: 4, 4>, dtype = "f64", nnz = 3 : i64, slices = [{extent = 4 : i64, used = 3 : i64, largest = 1 : i64, mean = 0.75 : f64, deviation = 0.4 : f64, bins = array<i64: 1, 3>}, {extent = 4 : i64, used = 3 : i64, largest = 1 : i64, mean = 0.75 : f64, deviation = 0.4 : f64, bins = array<i64: 1, 3>}], prefixes = array<i64: 3, 3>}}, %x: tensor<4xf64>, %z: tensor<4xf64>) -> tensor<4xf64> {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
    ins(%A, %x : tensor<4x4xf64, #sparse_tensor.encoding<*>>, tensor<4xf64>) outs(%z : tensor<4xf64>) {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %c, %p : f64
    linalg.yield %s : f64
  } -> tensor<4xf64>
  return %y : tensor<4xf64>
}

// -----

// RUN: sparsecc opt %s -p 'select-formats{}'
// expected-error {{sparsecc.statistics has no entry 'fill'}}
func.func @f(%A: tensor<4x4xf64, #sparse_tensor.encoding<*>> {sparsecc.statistics = {shape = array<i64: 4, 4>, dtype = "f64", nnz = 3 : i64, exact = true, fill = 1 : i64, slices = [{extent = 4 : i64, used = 3 : i64, largest = 1 : i64, mean = 0.75 : f64, deviation = 0.4 : f64, bins = array<i64: 1, 3>}, {extent = 4 : i64, used = 3 : i64, largest = 1 : i64, mean = 0.75 : f64, deviation = 0.4 : f64, bins = array<i64: 1, 3>}], prefixes = array<i64: 3, 3>}}, %x: tensor<4xf64>, %z: tensor<4xf64>) -> tensor<4xf64> {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
    ins(%A, %x : tensor<4x4xf64, #sparse_tensor.encoding<*>>, tensor<4xf64>) outs(%z : tensor<4xf64>) {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %c, %p : f64
    linalg.yield %s : f64
  } -> tensor<4xf64>
  return %y : tensor<4xf64>
}

// -----

// RUN: sparsecc opt %s -p 'select-formats{}'
// expected-error {{sparsecc.statistics.nnz is -3, but it is a whole number, 0 or more}}
func.func @f(%A: tensor<4x4xf64, #sparse_tensor.encoding<*>> {sparsecc.statistics = {shape = array<i64: 4, 4>, dtype = "f64", nnz = -3 : i64, exact = true, slices = [{extent = 4 : i64, used = 3 : i64, largest = 1 : i64, mean = 0.75 : f64, deviation = 0.4 : f64, bins = array<i64: 1, 3>}, {extent = 4 : i64, used = 3 : i64, largest = 1 : i64, mean = 0.75 : f64, deviation = 0.4 : f64, bins = array<i64: 1, 3>}], prefixes = array<i64: 3, 3>}}, %x: tensor<4xf64>, %z: tensor<4xf64>) -> tensor<4xf64> {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
    ins(%A, %x : tensor<4x4xf64, #sparse_tensor.encoding<*>>, tensor<4xf64>) outs(%z : tensor<4xf64>) {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %c, %p : f64
    linalg.yield %s : f64
  } -> tensor<4xf64>
  return %y : tensor<4xf64>
}

// -----

// RUN: sparsecc opt %s -p 'select-formats{}'
// expected-error {{sparsecc.statistics has 17 entries in a shape of 16}}
func.func @f(%A: tensor<4x4xf64, #sparse_tensor.encoding<*>> {sparsecc.statistics = {shape = array<i64: 4, 4>, dtype = "f64", nnz = 17 : i64, exact = true, slices = [{extent = 4 : i64, used = 3 : i64, largest = 1 : i64, mean = 0.75 : f64, deviation = 0.4 : f64, bins = array<i64: 1, 3>}, {extent = 4 : i64, used = 3 : i64, largest = 1 : i64, mean = 0.75 : f64, deviation = 0.4 : f64, bins = array<i64: 1, 3>}], prefixes = array<i64: 3, 3>}}, %x: tensor<4xf64>, %z: tensor<4xf64>) -> tensor<4xf64> {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
    ins(%A, %x : tensor<4x4xf64, #sparse_tensor.encoding<*>>, tensor<4xf64>) outs(%z : tensor<4xf64>) {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %c, %p : f64
    linalg.yield %s : f64
  } -> tensor<4xf64>
  return %y : tensor<4xf64>
}

// -----

// RUN: sparsecc opt %s -p 'select-formats{}'
// expected-error {{sparsecc.statistics.slices[0].mean is -0.75, but it is a finite number, 0 or more}}
func.func @f(%A: tensor<4x4xf64, #sparse_tensor.encoding<*>> {sparsecc.statistics = {shape = array<i64: 4, 4>, dtype = "f64", nnz = 3 : i64, exact = true, slices = [{extent = 4 : i64, used = 3 : i64, largest = 1 : i64, mean = -0.75 : f64, deviation = 0.4 : f64, bins = array<i64: 1, 3>}, {extent = 4 : i64, used = 3 : i64, largest = 1 : i64, mean = -0.75 : f64, deviation = 0.4 : f64, bins = array<i64: 1, 3>}], prefixes = array<i64: 3, 3>}}, %x: tensor<4xf64>, %z: tensor<4xf64>) -> tensor<4xf64> {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
    ins(%A, %x : tensor<4x4xf64, #sparse_tensor.encoding<*>>, tensor<4xf64>) outs(%z : tensor<4xf64>) {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %c, %p : f64
    linalg.yield %s : f64
  } -> tensor<4xf64>
  return %y : tensor<4xf64>
}

// -----

// RUN: sparsecc opt %s -p 'select-formats{}'
// expected-error {{sparsecc.statistics.exact is 'yes', but it is true or false}}
func.func @f(%A: tensor<4x4xf64, #sparse_tensor.encoding<*>> {sparsecc.statistics = {shape = array<i64: 4, 4>, dtype = "f64", nnz = 3 : i64, exact = "yes", slices = [{extent = 4 : i64, used = 3 : i64, largest = 1 : i64, mean = 0.75 : f64, deviation = 0.4 : f64, bins = array<i64: 1, 3>}, {extent = 4 : i64, used = 3 : i64, largest = 1 : i64, mean = 0.75 : f64, deviation = 0.4 : f64, bins = array<i64: 1, 3>}], prefixes = array<i64: 3, 3>}}, %x: tensor<4xf64>, %z: tensor<4xf64>) -> tensor<4xf64> {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
    ins(%A, %x : tensor<4x4xf64, #sparse_tensor.encoding<*>>, tensor<4xf64>) outs(%z : tensor<4xf64>) {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %c, %p : f64
    linalg.yield %s : f64
  } -> tensor<4xf64>
  return %y : tensor<4xf64>
}

// -----

// RUN: sparsecc opt %s -p 'select-formats{}'
// expected-error {{sparsecc.statistics.slices has 2 parts for 1 dimensions}}
func.func @f(%A: tensor<4x4xf64, #sparse_tensor.encoding<*>> {sparsecc.statistics = {shape = array<i64: 4>, dtype = "f64", nnz = 3 : i64, exact = true, slices = [{extent = 4 : i64, used = 3 : i64, largest = 1 : i64, mean = 0.75 : f64, deviation = 0.4 : f64, bins = array<i64: 1, 3>}, {extent = 4 : i64, used = 3 : i64, largest = 1 : i64, mean = 0.75 : f64, deviation = 0.4 : f64, bins = array<i64: 1, 3>}], prefixes = array<i64: 3, 3>}}, %x: tensor<4xf64>, %z: tensor<4xf64>) -> tensor<4xf64> {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
    ins(%A, %x : tensor<4x4xf64, #sparse_tensor.encoding<*>>, tensor<4xf64>) outs(%z : tensor<4xf64>) {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %c, %p : f64
    linalg.yield %s : f64
  } -> tensor<4xf64>
  return %y : tensor<4xf64>
}

// -----

// RUN: sparsecc opt %s -p 'select-formats{}'
// expected-error {{sparsecc.statistics is of shape (4, 5), but the tensor's is (4, 4)}}
func.func @f(%A: tensor<4x4xf64, #sparse_tensor.encoding<*>> {sparsecc.statistics = {shape = array<i64: 4, 5>, dtype = "f64", nnz = 3 : i64, exact = true, slices = [{extent = 4 : i64, used = 3 : i64, largest = 1 : i64, mean = 0.75 : f64, deviation = 0.4 : f64, bins = array<i64: 1, 3>}, {extent = 5 : i64, used = 3 : i64, largest = 1 : i64, mean = 0.75 : f64, deviation = 0.4 : f64, bins = array<i64: 1, 3>}], prefixes = array<i64: 3, 3>}}, %x: tensor<4xf64>, %z: tensor<4xf64>) -> tensor<4xf64> {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
    ins(%A, %x : tensor<4x4xf64, #sparse_tensor.encoding<*>>, tensor<4xf64>) outs(%z : tensor<4xf64>) {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %c, %p : f64
    linalg.yield %s : f64
  } -> tensor<4xf64>
  return %y : tensor<4xf64>
}

// -----

// RUN: sparsecc opt %s -p 'select-formats{}'
// expected-error {{sparsecc.statistics is of f32, but the tensor's elements are f64}}
func.func @f(%A: tensor<4x4xf64, #sparse_tensor.encoding<*>> {sparsecc.statistics = {shape = array<i64: 4, 4>, dtype = "f32", nnz = 3 : i64, exact = true, slices = [{extent = 4 : i64, used = 3 : i64, largest = 1 : i64, mean = 0.75 : f64, deviation = 0.4 : f64, bins = array<i64: 1, 3>}, {extent = 4 : i64, used = 3 : i64, largest = 1 : i64, mean = 0.75 : f64, deviation = 0.4 : f64, bins = array<i64: 1, 3>}], prefixes = array<i64: 3, 3>}}, %x: tensor<4xf64>, %z: tensor<4xf64>) -> tensor<4xf64> {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
    ins(%A, %x : tensor<4x4xf64, #sparse_tensor.encoding<*>>, tensor<4xf64>) outs(%z : tensor<4xf64>) {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %c, %p : f64
    linalg.yield %s : f64
  } -> tensor<4xf64>
  return %y : tensor<4xf64>
}

// -----

// RUN: sparsecc opt %s -p 'select-formats{}'
// expected-error {{sparsecc.statistics.symmetry is 'round', none of}}
func.func @f(%A: tensor<4x4xf64, #sparse_tensor.encoding<*>> {sparsecc.statistics = {shape = array<i64: 4, 4>, dtype = "f64", nnz = 3 : i64, exact = true, symmetry = "round", slices = [{extent = 4 : i64, used = 3 : i64, largest = 1 : i64, mean = 0.75 : f64, deviation = 0.4 : f64, bins = array<i64: 1, 3>}, {extent = 4 : i64, used = 3 : i64, largest = 1 : i64, mean = 0.75 : f64, deviation = 0.4 : f64, bins = array<i64: 1, 3>}], prefixes = array<i64: 3, 3>}}, %x: tensor<4xf64>, %z: tensor<4xf64>) -> tensor<4xf64> {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
    ins(%A, %x : tensor<4x4xf64, #sparse_tensor.encoding<*>>, tensor<4xf64>) outs(%z : tensor<4xf64>) {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %c, %p : f64
    linalg.yield %s : f64
  } -> tensor<4xf64>
  return %y : tensor<4xf64>
}

// -----

// RUN: sparsecc opt %s -p 'select-formats{}'
// expected-error {{sparsecc.stored: there is no format 'CSSR'}}
func.func @f(%A: tensor<4x4xf64, #sparse_tensor.encoding<*>> {sparsecc.stored = "CSSR"}, %x: tensor<4xf64>, %z: tensor<4xf64>) -> tensor<4xf64> {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
    ins(%A, %x : tensor<4x4xf64, #sparse_tensor.encoding<*>>, tensor<4xf64>) outs(%z : tensor<4xf64>) {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %c, %p : f64
    linalg.yield %s : f64
  } -> tensor<4xf64>
  return %y : tensor<4xf64>
}

// -----

// RUN: sparsecc opt %s -p 'select-formats{}'
// expected-error {{sparsecc.stored is 1 : i64, no text}}
func.func @f(%A: tensor<4x4xf64, #sparse_tensor.encoding<*>> {sparsecc.stored = 1 : i64}, %x: tensor<4xf64>, %z: tensor<4xf64>) -> tensor<4xf64> {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
    ins(%A, %x : tensor<4x4xf64, #sparse_tensor.encoding<*>>, tensor<4xf64>) outs(%z : tensor<4xf64>) {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %c, %p : f64
    linalg.yield %s : f64
  } -> tensor<4xf64>
  return %y : tensor<4xf64>
}

// -----

// RUN: sparsecc opt %s -p 'select-formats{calls=-1}'
// expected-error {{calls is '-1', but it is a number of calls, above 0}}
func.func @f(%x: tensor<4xf64>) -> tensor<4xf64> {
  return %x : tensor<4xf64>
}

// -----

// RUN: sparsecc opt %s -p 'select-formats{sizes=m=3}'
// expected-error {{sizes is 'm=3', but it names extents}}
func.func @f(%x: tensor<4xf64>) -> tensor<4xf64> {
  return %x : tensor<4xf64>
}

// -----

// RUN: sparsecc opt %s -p 'select-formats{target=nope}'
// expected-error {{there is no target 'nope'}}
func.func @f(%x: tensor<4xf64>) -> tensor<4xf64> {
  return %x : tensor<4xf64>
}

// -----

// RUN: sparsecc opt %s -p 'select-formats{entry=nosuch}'
// expected-error {{entry names @nosuch, which the program does not have}}
func.func @f(%x: tensor<4xf64>) -> tensor<4xf64> {
  return %x : tensor<4xf64>
}

// -----

// RUN: sparsecc opt %s -p 'select-formats{calls=1 calls=2}'
// expected-error {{option calls of pass select-formats is given twice}}
func.func @f(%x: tensor<4xf64>) -> tensor<4xf64> {
  return %x : tensor<4xf64>
}

// -----

// RUN: sparsecc opt %s -p 'select-formats{strategy=roofline}'
// expected-error {{function @f has no body}}
func.func private @f(tensor<4xf64>) -> tensor<4xf64>

// -----

// RUN: sparsecc opt %s -p 'sparsify'
// expected-error {{function @f has no body}}
func.func private @f(tensor<4xf64>) -> tensor<4xf64>

// -----

// RUN: sparsecc opt %s -p 'select-formats'
// expected-error {{function @f has 2 blocks}}
func.func @f(%x: tensor<4xf64>) -> tensor<4xf64> {
  cf.br ^bb1
^bb1:
  return %x : tensor<4xf64>
}

// -----

// RUN: sparsecc opt %s -p 'select-formats{strategy=roofline}'
// expected-error {{formats can't be chosen where tensor A has elements of type i7}}
func.func @f(%A: tensor<4x4xi7, #sparse_tensor.encoding<*>>, %x: tensor<4xi7>, %z: tensor<4xi7>) -> tensor<4xi7> {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
    ins(%A, %x : tensor<4x4xi7, #sparse_tensor.encoding<*>>, tensor<4xi7>) outs(%z : tensor<4xi7>) {
  ^bb0(%a: i7, %b: i7, %c: i7):
    %0 = arith.muli %a, %b : i7
    %1 = arith.addi %c, %0 : i7
    linalg.yield %1 : i7
  } -> tensor<4xi7>
  return %y : tensor<4xi7>
}
