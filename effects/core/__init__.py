"""Operations, columns of rules, arrays and named axes: what `perform` needs; may import base, trees and types."""
