//! Every kernel computes its documented result, in every instruction set and access, at any length.

use numalab_membench::{Access, Arrays, Isa, Kernel, Line, Stream, StreamError};

/// Returns the content of a line of each array before a pass; all values and sums are exact in f64.
fn initial(array: u32, line: u32) -> Line {
    let mut words = Line::ZERO;
    for (word, place) in words.words_mut().iter_mut().zip(0..) {
        *word = f64::from(array * 1_000_000 + line * 8 + place).to_bits();
    }
    words
}

fn array(number: u32, lines: u32) -> Vec<Line> {
    (0..lines).map(|line| initial(number, line)).collect()
}

/// Returns the expected content of the first array at `line` after a pass.
fn expected(kernel: Kernel, line: u32) -> Line {
    let mut result = initial(0, line);
    let (left, right) = (initial(1, line), initial(2, line));
    for (place, word) in result.words_mut().iter_mut().enumerate() {
        let left = f64::from_bits(left.words()[place]);
        let right = f64::from_bits(right.words()[place]);
        *word = match kernel {
            Kernel::Read => continue,
            Kernel::Write | Kernel::NtWrite => 3.0_f64,
            Kernel::Copy | Kernel::NtCopy => left,
            Kernel::Triad => left + 3.0 * right,
        }
        .to_bits();
    }
    result
}

fn available() -> impl Iterator<Item = Isa> {
    Isa::ALL.into_iter().filter(|isa| isa.is_available())
}

fn arrays<'a>(
    kernel: Kernel,
    to: &'a mut [Line],
    left: &'a mut [Line],
    right: &'a mut [Line],
) -> Arrays<'a> {
    match kernel.arrays() {
        1 => Arrays::One(to),
        2 => Arrays::Two { to, from: left },
        _ => Arrays::Three { to, left, right },
    }
}

const ACCESSES: [Access; 4] = [
    Access::Sequential,
    Access::Strided { stride_bytes: 64 * 5 },
    Access::Strided { stride_bytes: 1 << 30 },
    Access::Random { seed: 9 },
];

#[test]
fn a_pass_of_every_kernel_gives_the_right_values_and_touches_nothing_else() {
    for isa in available() {
        for kernel in Kernel::ALL {
            for access in ACCESSES {
                for lines in (1..=40).chain([129, 1000]) {
                    check_pass(kernel, access, isa, lines);
                }
            }
        }
    }
}

fn check_pass(kernel: Kernel, access: Access, isa: Isa, lines: u32) {
    let length = lines as usize;
    // One extra line at either end, which must stay unchanged.
    let mut to = array(0, lines + 2);
    let (mut left, mut right) = (array(1, lines + 2), array(2, lines + 2));
    let inside = 1..=length;
    let chosen =
        arrays(kernel, &mut to[inside.clone()], &mut left[inside.clone()], &mut right[inside]);
    let mut stream = Stream::new(kernel, access, isa, chosen).unwrap();
    let counted = stream.pass();
    let what = format!("{kernel} {access} {isa} {lines} lines");
    assert_eq!(counted, kernel.counted_bytes(64 * u64::from(lines)), "{what}");
    for line in 1..=lines {
        assert_eq!(to[line as usize], expected(kernel, line), "{what}, line {line}");
    }
    for outside in [0, lines + 1] {
        assert_eq!(to[outside as usize], initial(0, outside), "{what}, outside");
    }
    assert_eq!((left, right), (array(1, lines + 2), array(2, lines + 2)), "{what}");
}

/// Copies by advancing a new stream by each of `pieces`; returns the counted bytes.
fn copy(access: Access, to: &mut [Line], from: &mut [Line], pieces: &[usize]) -> Vec<u64> {
    let arrays = Arrays::Two { to, from };
    let mut stream = Stream::new(Kernel::Copy, access, Isa::detect(), arrays).unwrap();
    assert_eq!(stream.array_bytes(), 6400);
    pieces.iter().map(|&lines| stream.advance(lines)).collect()
}

#[test]
fn pieces_add_up_to_a_pass_after_which_it_begins_again() {
    for access in ACCESSES {
        let mut from = array(1, 100);

        let mut to = array(0, 100);
        let counted = copy(access, &mut to, &mut from, &[33, 0, 67]);
        assert_eq!(counted, [33 * 128, 0, 67 * 128]);
        assert_eq!(to, from, "{access}");

        to = array(0, 100);
        copy(access, &mut to, &mut from, &[45, 15]);
        let copied = to.iter().zip(&from).filter(|(to, from)| to == from).count();
        assert_eq!(copied, 60, "{access}");

        to = array(0, 100);
        assert_eq!(copy(access, &mut to, &mut from, &[90, 160]), [90 * 128, 160 * 128]);
        assert_eq!(to, from, "{access}");
    }
}

#[test]
fn bytes_are_counted_as_stream_does() {
    let table = Kernel::ALL.map(|kernel| kernel.counted_bytes(10));
    assert_eq!(table, [10, 10, 10, 20, 20, 30]);
}

#[test]
fn one_memory_is_split_into_equal_arrays() {
    let mut lines = array(0, 11);
    for (kernel, each) in [(Kernel::Read, 11), (Kernel::Copy, 5), (Kernel::Triad, 3)] {
        let arrays = Arrays::split(kernel, &mut lines).unwrap();
        let stream = Stream::new(kernel, Access::Sequential, Isa::detect(), arrays).unwrap();
        assert_eq!(stream.array_bytes(), each * 64);
        assert_eq!(stream.kernel(), kernel);
    }
    // At equal offsets in their huge pages, lines would share a bank of memory.
    let mut large = array(0, (4 << 20) / 64);
    let all = large.len() * 64;
    let Arrays::Three { to, left, right } = Arrays::split(Kernel::Triad, &mut large).unwrap()
    else {
        panic!("a triad has three arrays")
    };
    let distances = [(&*to, &*left), (&*left, &*right)]
        .map(|(first, second)| second.as_ptr().addr() - first.as_ptr().addr() - first.len() * 64);
    assert_eq!(distances, [9 << 10; 2]);
    assert!((0..192).contains(&(all - 3 * to.len() * 64 - (18 << 10))));
    let refused = Arrays::split(Kernel::Triad, &mut lines[..2]);
    assert_eq!(refused.err(), Some(StreamError::Empty { kernel: Kernel::Triad }));
}

#[test]
fn invalid_streams_are_refused_with_the_reason() {
    fn refused(
        kernel: Kernel,
        access: Access,
        isa: Isa,
        arrays: Arrays<'_>,
    ) -> Option<StreamError> {
        Stream::new(kernel, access, isa, arrays).err()
    }
    let isa = Isa::detect();
    let sequential = Access::Sequential;
    let (mut a, mut b) = (array(0, 4), array(1, 5));

    let kernel = Kernel::Triad;
    assert_eq!(
        refused(kernel, sequential, isa, Arrays::One(&mut a)),
        Some(StreamError::WrongArrays { kernel, given: 1 })
    );
    let kernel = Kernel::Copy;
    assert_eq!(
        refused(kernel, sequential, isa, Arrays::Two { to: &mut a, from: &mut b }),
        Some(StreamError::WrongArrays { kernel, given: 2 })
    );
    let kernel = Kernel::Read;
    assert_eq!(
        refused(kernel, sequential, isa, Arrays::One(&mut [])),
        Some(StreamError::Empty { kernel })
    );
    for stride_bytes in [0, 65] {
        assert_eq!(
            refused(kernel, Access::Strided { stride_bytes }, isa, Arrays::One(&mut a)),
            Some(StreamError::BadStride { stride_bytes })
        );
    }
    let foreign = if cfg!(target_arch = "x86_64") { Isa::Neon } else { Isa::Avx2 };
    assert_eq!(
        refused(kernel, sequential, foreign, Arrays::One(&mut a)),
        Some(StreamError::UnavailableIsa { isa: foreign })
    );
}

#[test]
fn a_stream_continues_in_another_set_where_it_was() {
    for kernel in Kernel::ALL {
        let (mut to, mut left, mut right) = (array(0, 60), array(1, 60), array(2, 60));
        let arrays = arrays(kernel, &mut to, &mut left, &mut right);
        let mut stream = Stream::new(kernel, Access::Sequential, Isa::detect(), arrays).unwrap();
        for isa in available() {
            stream.set_isa(isa).unwrap();
            assert_eq!(stream.isa(), isa);
            stream.advance(20);
        }
        let done = 60.min(20 * available().count());
        for (line, place) in to.iter().zip(0..).take(done) {
            assert_eq!(*line, expected(kernel, place), "{kernel} {place}");
        }
    }
}
