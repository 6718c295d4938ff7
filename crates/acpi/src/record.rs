//! Fixed-size structures as the specification draws them: fields in order, little-endian, packed.

use crate::writer::Writer;

/// A run of fields of fixed total size, read and written in table order.
pub trait Record: Copy {
    /// Bytes the fields take in a table.
    const SIZE: usize;

    /// Takes the fields off the front of `bytes`, or returns `None` if these are too few.
    #[doc(hidden)]
    fn read(bytes: &mut &[u8]) -> Option<Self>;

    /// Appends the fields.
    #[doc(hidden)]
    fn write(&self, writer: &mut Writer<'_>);
}

macro_rules! integer_record {
    ($($integer:ty),*) => {$(
        impl Record for $integer {
            const SIZE: usize = size_of::<Self>();

            fn read(bytes: &mut &[u8]) -> Option<Self> {
                let (field, rest) = bytes.split_first_chunk()?;
                *bytes = rest;
                Some(Self::from_le_bytes(*field))
            }

            fn write(&self, writer: &mut Writer<'_>) {
                writer.bytes(&self.to_le_bytes());
            }
        }
    )*};
}

integer_record!(u8, u16, u32, u64);

/// For tables whose entries follow the header at once.
impl Record for () {
    const SIZE: usize = 0;

    fn read(_: &mut &[u8]) -> Option<Self> {
        Some(())
    }

    fn write(&self, _: &mut Writer<'_>) {}
}

impl<const N: usize> Record for [u8; N] {
    const SIZE: usize = N;

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        let (field, rest) = bytes.split_first_chunk()?;
        *bytes = rest;
        Some(*field)
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.bytes(self);
    }
}

/// Declares a structure and its table layout at once.
///
/// `== SIZE, head HEAD` asserts, at compile time, that the entry head and the fields together have
/// the size which the specification gives.
macro_rules! record {
    (
        $(#[$meta:meta])*
        pub struct $name:ident == $size:literal, head $head:expr => {
            $($(#[$field_meta:meta])* pub $field:ident: $type:ty,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_meta])* pub $field: $type,)*
        }

        impl $crate::record::Record for $name {
            const SIZE: usize = 0 $(+ <$type as $crate::record::Record>::SIZE)*;

            fn read(bytes: &mut &[u8]) -> Option<Self> {
                Some(Self { $($field: $crate::record::Record::read(bytes)?,)* })
            }

            fn write(&self, writer: &mut $crate::writer::Writer<'_>) {
                $($crate::record::Record::write(&self.$field, writer);)*
            }
        }

        const _: () = assert!($head + <$name as $crate::record::Record>::SIZE == $size);
    };
}
