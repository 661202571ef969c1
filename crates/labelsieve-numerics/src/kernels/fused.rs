//! `a · b + c` rounded once, with or without an instruction for it.

/// `a * b + c` rounded once, by the instruction that every machine of this architecture has.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
pub(super) fn multiply_add(a: f32, b: f32, c: f32) -> f32 {
    a.mul_add(b, c)
}

/// `a * b + c` rounded once, without an instruction for it.
///
/// In double precision the product is exact and the sum nearly: it is *rounded to odd*, that is, where bits were lost and
/// the last one kept is 0, the neighbour on the side of what was lost is taken, whose last bit is 1. Rounding that to single
/// precision is rounding the exact sum (Boldo and Melquiond 2008); rounding the double as it came would round twice.
#[cfg(not(target_arch = "aarch64"))]
#[inline(always)]
pub(super) fn multiply_add(a: f32, b: f32, c: f32) -> f32 {
    let product = f64::from(a) * f64::from(b);
    let c = f64::from(c);
    let sum = product + c;
    // The rounding error of the sum, exactly (Knuth's two-sum).
    let of_c = sum - product;
    let lost = (product - (sum - of_c)) + (c - of_c);
    let bits = sum.to_bits();
    let away_from_zero = (lost > 0.0) == (sum > 0.0);
    let is_even_and_inexact = bits & 1 == 0 && lost.abs() > 0.0; // never for infinities, which lose NaN
    let step = if away_from_zero { 1 } else { u64::MAX };
    f64::from_bits(bits.wrapping_add(if is_even_and_inexact { step } else { 0 })) as f32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn same(a: f32, b: f32, c: f32) -> bool {
        let found = multiply_add(a, b, c);
        let expected = a.mul_add(b, c);
        found.to_bits() == expected.to_bits() || (found.is_nan() && expected.is_nan())
    }

    #[test]
    fn a_sum_that_would_be_rounded_twice_is_rounded_once() {
        let ulp = 2f32.powi(-23);
        // c + 2⁻²⁴ - 2⁻⁷⁰ lies just below the middle of two floats; double precision loses 2⁻⁷⁰ and sees the middle.
        let a = 1.0 + ulp;
        let b = (1.0 - ulp) * ulp / 2.0;
        let c = 1.0 + ulp;
        assert_eq!(multiply_add(a, b, c), c);
        assert_eq!(multiply_add(-a, b, -c), -c);
        assert_eq!((f64::from(a) * f64::from(b) + f64::from(c)) as f32, c + ulp);
    }

    #[test]
    fn infinities_and_zeros_come_out_as_the_instruction_gives_them() {
        let odd = [
            0.0,
            -0.0,
            1.0,
            -1.5,
            f32::MAX,
            f32::MIN_POSITIVE,
            1e-45,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::NAN,
        ];
        for a in odd {
            for b in odd {
                for c in odd {
                    assert!(same(a, b, c), "{a} * {b} + {c}");
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn any_three_numbers_give_the_bits_of_the_instruction(bits in any::<[u32; 3]>(), near in any::<bool>()) {
            let [a, b, mut c] = bits.map(f32::from_bits);
            if near {
                c = -(a * b) * (1.0 + c.fract() * 1e-7); // most of the sum cancels
            }
            prop_assert!(same(a, b, c), "{a} * {b} + {c}");
        }
    }
}
