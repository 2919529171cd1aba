// RUN: sparsecc opt %s -p 'lower-iteration' | filecheck %s

// How much a product stores is not known beforehand: a function counts, another one stores.

#CSR = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @k0(%A: tensor<?x?xf64, #CSR>, %C: tensor<?x?xf64, #CSR>) attributes {iteration.kernel, iteration.assembly = "workspace", iteration.counted} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %A, %c0 : tensor<?x?xf64, #CSR>
  %a0 = iteration.root %A : tensor<?x?xf64, #CSR>
  iteration.iterate "i" extent %n assemble 0 case %i {
    %a1 = iteration.locate %A, %a0, %i level 0 : tensor<?x?xf64, #CSR>
    iteration.workspace "j" in %C level 1 : tensor<?x?xf64, #CSR> {
      iteration.iterate "j" over (%A at %a1 level 1 : tensor<?x?xf64, #CSR>) case %j with {0: %a2} {
        %v = iteration.value %A, %a2 : tensor<?x?xf64, #CSR> -> f64
        iteration.insert %v into %C at (%i, %j) accumulate : f64, tensor<?x?xf64, #CSR>
      }
    }
  }
  return
}

// CHECK-LABEL: func.func @k0_count
// CHECK-NOT:     %out_values
// CHECK:         memref.store %{{.*}}, %counters[%c0]
// CHECK-LABEL: func.func @k0(
// CHECK:         memref.store %{{.*}}, %work_values[%j]
// CHECK:         func.call @sort(%work_list, %{{.*}})
// CHECK-LABEL: func.func @sort
