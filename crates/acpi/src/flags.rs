//! Flag words: named bits over an integer, which keeps unknown bits.

/// Declares a flag word with its named bits, and the text shown if none is set.
macro_rules! flags {
    (
        $(#[$meta:meta])*
        pub struct $name:ident($integer:ty), none $none:literal {
            $($(#[$bit_meta:meta])* $bit:ident = $value:expr, $text:literal;)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub struct $name(pub $integer);

        impl $name {
            $($(#[$bit_meta])* pub const $bit: Self = Self($value);)*

            /// Returns true if every bit of `other` is set.
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            /// Returns these flags together with those of `other`.
            pub const fn with(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }

        impl $crate::record::Record for $name {
            const SIZE: usize = size_of::<$integer>();

            fn read(bytes: &mut &[u8]) -> Option<Self> {
                $crate::record::Record::read(bytes).map(Self)
            }

            fn write(&self, writer: &mut $crate::writer::Writer<'_>) {
                $crate::record::Record::write(&self.0, writer);
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                let known = 0 $(| $value)*;
                let mut separator = "";
                $(
                    if self.contains(Self::$bit) {
                        write!(f, "{separator}{}", $text)?;
                        separator = ", ";
                    }
                )*
                match self.0 & !known {
                    0 if separator.is_empty() => f.write_str($none),
                    0 => Ok(()),
                    unknown => write!(f, "{separator}bits {unknown:#x}"),
                }
            }
        }
    };
}
