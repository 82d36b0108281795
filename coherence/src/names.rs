//! Enums whose values people meet by name: in the ledger, on command lines and in the documents.

/// Defines an enum with `ALL`, `name()` and `explanation()`. The first string is the name, the second says what it means in a
/// sentence and is the variant's documentation too.
macro_rules! names {
    (
        $(#[$attribute:meta])*
        pub enum $type:ident { $($variant:ident $name:literal: $explanation:literal,)+ }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $type {
            $(#[doc = $explanation] $variant,)+
        }

        impl $type {
            /// Every value, in the order in which they are listed to people.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// The name, as people meet it.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// What it means, in a sentence.
            pub const fn explanation(self) -> &'static str {
                match self { $(Self::$variant => $explanation,)+ }
            }

            /// The value of that name.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|value| value.name() == name)
            }
        }

        impl core::fmt::Display for $type {
            fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                formatter.write_str(self.name())
            }
        }
    };
}

pub(crate) use names;
