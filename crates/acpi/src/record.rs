//! Fixed-size structures as in the specification: fields in order, little-endian, packed.

use crate::writer::Writer;

/// A sequence of fields of fixed total size, read and written in table order.
pub trait Record: Copy {
    /// Size of the fields in a table in bytes.
    const SIZE: usize;

    /// Takes the fields off the front of `bytes`, or returns `None` if there are too few bytes.
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

/// The record of tables in which the entries directly follow the header.
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

/// Declares a structure together with its table layout.
///
/// `== SIZE, head HEAD` asserts, at compile time, that the entry head and the fields together have
/// the size given in the specification.
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

/// Declares a structure of fixed fields, as `record!` does, and one part of varying length after
/// them. The fixed fields are a record too.
macro_rules! headed {
    (
        $(#[$meta:meta])*
        pub struct $name:ident<$life:lifetime>, $fixed:ident == $size:literal, head $head:expr => {
            $($(#[$field_meta:meta])* pub $field:ident: $type:ty,)*
        } then {
            $(#[$rest_meta:meta])* pub $rest:ident: $rest_type:ty,
        }
    ) => {
        record! {
            #[doc = concat!("The fixed fields of a [`", stringify!($name), "`].")]
            pub struct $fixed == $size, head $head => {
                $($(#[$field_meta])* pub $field: $type,)*
            }
        }

        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name<$life> {
            $($(#[$field_meta])* pub $field: $type,)*
            $(#[$rest_meta])* pub $rest: $rest_type,
        }

        impl<$life> $name<$life> {
            fn of(fixed: $fixed, $rest: $rest_type) -> Self {
                Self { $($field: fixed.$field,)* $rest }
            }

            fn fixed(&self) -> $fixed {
                $fixed { $($field: self.$field,)* }
            }
        }
    };
}
