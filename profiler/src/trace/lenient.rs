//! Values that may be of another type than is wanted: they are passed over, and nothing is kept of them.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use super::list;

/// A value of a type, or nothing where the text has another.
pub(super) struct Lenient<T>(pub(super) Option<T>);

/// A type that a value may be of.
pub(super) trait Wanted: Sized {
    /// A value that is neither a list nor an object.
    fn of_scalar(_: Scalar<'_>) -> Option<Self> {
        None
    }

    /// A list, all of which is read.
    fn of_list<'de, A: SeqAccess<'de>>(list: A) -> Result<Option<Self>, A::Error> {
        Checked.visit_seq(list).map(|Checked| None)
    }

    /// An object, all of which is read.
    fn of_object<'de, A: MapAccess<'de>>(object: A) -> Result<Option<Self>, A::Error> {
        Checked.visit_map(object).map(|Checked| None)
    }
}

/// A value of one piece; `null` is none.
pub(super) enum Scalar<'a> {
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Text(&'a str),
}

impl<'de, T: Wanted> Deserialize<'de> for Lenient<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(LenientVisitor(PhantomData))
    }
}

struct LenientVisitor<T>(PhantomData<T>);

impl<'de, T: Wanted> Visitor<'de> for LenientVisitor<T> {
    type Value = Lenient<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Lenient<T>, E> {
        Ok(Lenient(T::of_scalar(Scalar::Bool(value))))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Lenient<T>, E> {
        Ok(Lenient(T::of_scalar(Scalar::Signed(value))))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Lenient<T>, E> {
        Ok(Lenient(T::of_scalar(Scalar::Unsigned(value))))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Lenient<T>, E> {
        Ok(Lenient(T::of_scalar(Scalar::Float(value))))
    }

    fn visit_str<E>(self, value: &str) -> Result<Lenient<T>, E> {
        Ok(Lenient(T::of_scalar(Scalar::Text(value))))
    }

    fn visit_unit<E>(self) -> Result<Lenient<T>, E> {
        Ok(Lenient(None))
    }

    fn visit_none<E>(self) -> Result<Lenient<T>, E> {
        Ok(Lenient(None))
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<Lenient<T>, D::Error> {
        Lenient::deserialize(inner)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Lenient<T>, A::Error> {
        T::of_list(list).map(Lenient)
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Lenient<T>, A::Error> {
        T::of_object(object).map(Lenient)
    }
}

impl Wanted for bool {
    fn of_scalar(value: Scalar<'_>) -> Option<Self> {
        match value {
            Scalar::Bool(value) => Some(value),
            _ => None,
        }
    }
}

impl Wanted for f64 {
    #[allow(
        clippy::cast_precision_loss,
        reason = "a whole number under a key for any number is the nearest one"
    )]
    fn of_scalar(value: Scalar<'_>) -> Option<Self> {
        match value {
            Scalar::Float(value) => Some(value),
            Scalar::Unsigned(value) => Some(value as f64),
            Scalar::Signed(value) => Some(value as f64),
            _ => None,
        }
    }
}

macro_rules! whole_numbers {
    ($($type:ty)*) => {$(
        impl Wanted for $type {
            fn of_scalar(value: Scalar<'_>) -> Option<Self> {
                match value {
                    Scalar::Unsigned(value) => value.try_into().ok(),
                    Scalar::Signed(value) => value.try_into().ok(),
                    _ => None,
                }
            }
        }
    )*};
}

whole_numbers! { i64 u32 u64 usize }

impl Wanted for String {
    fn of_scalar(value: Scalar<'_>) -> Option<Self> {
        match value {
            Scalar::Text(text) => Some(text.to_owned()),
            _ => None,
        }
    }
}

impl<T: Wanted> Wanted for Vec<T> {
    fn of_list<'de, A: SeqAccess<'de>>(mut values: A) -> Result<Option<Self>, A::Error> {
        let mut found = Vec::new();
        while let Some(Lenient(value)) = values.next_element::<Lenient<T>>()? {
            let Some(value) = value else {
                return Checked.visit_seq(values).map(|Checked| None);
            };
            list::push(&mut found, value);
        }
        Ok(Some(found))
    }
}

impl<T: Wanted> Wanted for BTreeMap<String, T> {
    fn of_object<'de, A: MapAccess<'de>>(mut object: A) -> Result<Option<Self>, A::Error> {
        let mut found = BTreeMap::new();
        while let Some((key, Lenient(value))) = object.next_entry::<String, Lenient<T>>()? {
            let Some(value) = value else {
                return Checked.visit_map(object).map(|Checked| None);
            };
            found.insert(key, value);
        }
        Ok(Some(found))
    }
}

/// Walks a value without keeping it. Unlike serde's own way to pass over a value it looks into numbers and texts, and so
/// refuses exactly what a reader that keeps the value refuses.
pub(super) struct Checked;

impl<'de> Deserialize<'de> for Checked {
    fn deserialize<D: Deserializer<'de>>(inner: D) -> Result<Self, D::Error> {
        inner.deserialize_any(Checked)
    }
}

impl<'de> Visitor<'de> for Checked {
    type Value = Checked;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_str<E>(self, _: &str) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_unit<E>(self) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_none<E>(self) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<Checked, D::Error> {
        Checked::deserialize(inner)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Checked, A::Error> {
        while seq.next_element::<Checked>()?.is_some() {}
        Ok(Checked)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Checked, A::Error> {
        while map.next_entry::<Checked, Checked>()?.is_some() {}
        Ok(Checked)
    }
}
