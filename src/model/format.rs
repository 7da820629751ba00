use std::cell::Cell;
use std::io::{self, Write};

use serde_json::ser::{Formatter, PrettyFormatter};

use super::seal::Sum;

/// Formats JSON for readers: each member of an object has a line, a list of numbers stays on one line, and each list in a
/// list has a line. Adds the checksum as the last member of the outermost object.
pub(super) struct ModelFormatter<'a> {
    sum: &'a Cell<Sum>,
    objects: PrettyFormatter<'static>,
    depth: usize,
    /// For each open list or object, whether it is a list.
    open: Vec<bool>,
}

impl<'a> ModelFormatter<'a> {
    /// `sum` is the checksum of the bytes written so far.
    pub fn new(sum: &'a Cell<Sum>) -> Self {
        ModelFormatter { sum, objects: PrettyFormatter::with_indent(b" "), depth: 0, open: Vec::new() }
    }

    fn new_line<W: ?Sized + Write>(&self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b"\n")?;
        (0..=self.depth).try_for_each(|_| writer.write_all(b" "))
    }
}

impl Formatter for ModelFormatter<'_> {
    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if self.open.last() == Some(&true) {
            self.new_line(writer)?;
        }
        self.open.push(true);
        writer.write_all(b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open.pop();
        writer.write_all(b"]")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open.push(false);
        self.depth += 1;
        self.objects.begin_object(writer)
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open.pop();
        self.depth -= 1;
        if self.depth == 0 {
            write!(writer, ",\n \"checksum\": \"{}\"", self.sum.get().digits())?;
        }
        self.objects.end_object(writer)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.objects.begin_object_key(writer, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.objects.begin_object_value(writer)
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.objects.end_object_value(writer)
    }
}
