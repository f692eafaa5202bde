module {
  func.func public @main() -> tensor<5xf32> {
    %0 = stablehlo.constant dense<0x3F800000> : tensor<f32>
    %1 = stablehlo.constant dense<0x00000000> : tensor<f32>
    %2 = stablehlo.constant dense<0x3E800000> : tensor<f32>
    %3 = stablehlo.constant dense<0x3F000000> : tensor<f32>
    %4 = stablehlo.reshape %0 : (tensor<f32>) -> tensor<1xf32>
    %5 = stablehlo.pad %4, %1, low = [0], high = [4], interior = [0] : (tensor<1xf32>, tensor<f32>) -> tensor<5xf32>
    %6 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %7 = stablehlo.multiply %6, %5 : tensor<5xf32>
    %8 = stablehlo.slice %7 [4:5] : (tensor<5xf32>) -> tensor<1xf32>
    %9 = stablehlo.slice %7 [0:4] : (tensor<5xf32>) -> tensor<4xf32>
    %10 = stablehlo.concatenate %8, %9, dim = 0 : (tensor<1xf32>, tensor<4xf32>) -> tensor<5xf32>
    %11 = stablehlo.slice %7 [1:5] : (tensor<5xf32>) -> tensor<4xf32>
    %12 = stablehlo.slice %7 [0:1] : (tensor<5xf32>) -> tensor<1xf32>
    %13 = stablehlo.concatenate %11, %12, dim = 0 : (tensor<4xf32>, tensor<1xf32>) -> tensor<5xf32>
    %14 = stablehlo.add %10, %13 : tensor<5xf32>
    %15 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %16 = stablehlo.multiply %15, %5 : tensor<5xf32>
    %17 = stablehlo.add %14, %16 : tensor<5xf32>
    return %17 : tensor<5xf32>
  }
}
