//! The end of a stream, and the places of its rows.

use gmm_bmm::data::{BadRows, Block, Missing, ReadOptions, RowReader};

use super::options;

fn stream(text: &str, options: ReadOptions) -> RowReader {
    super::open(text, options).unwrap()
}

#[test]
fn a_stream_can_be_sent_to_another_thread() {
    fn is_send<T: Send>(_: &T) {}
    is_send(&stream("1\n", options()));
}

#[test]
fn after_an_error_the_stream_is_at_its_end() {
    let mut stream = stream("1\n2\nx\n3\n", options());
    let mut block = Block::new(1);
    assert!(stream.read_block(&mut block, 100).is_err());
    assert_eq!(block.values(), [1.0, 2.0]);
    assert!(!stream.read_block(&mut block, 100).unwrap());
}

#[test]
fn rows_know_their_place_among_those_that_were_skipped() {
    let text = "x\nx\n1\n2\nx\n3\nx\nx\n4\n5\nx\n";
    let mut stream = stream(&format!("a\n{text}"), options().bad_rows(BadRows::Skip));
    let mut block = Block::new(1);
    let mut places = Vec::new();
    loop {
        let before = stream.rows_read() + stream.rows_skipped();
        if !stream.read_block(&mut block, 3).unwrap() {
            break;
        }
        places.extend((0..block.rows()).map(|i| before + block.place(i)));
    }
    assert_eq!(places, [3, 4, 6, 9, 10]);
}

#[test]
fn rows_with_gaps_that_are_left_out_have_a_place_too() {
    let options = options().bad_rows(BadRows::Skip).missing(Missing::Skip);
    let mut stream = stream("a,b\n,1\n1,2\nx,3\nNA,\n4,5\n", options);
    let mut block = Block::new(2);
    assert!(stream.read_block(&mut block, 100).unwrap());
    assert_eq!(block.values(), [1.0, 2.0, 4.0, 5.0]);
    assert_eq!([block.place(0), block.place(1)], [2, 5]);
    assert_eq!((stream.rows_read(), stream.rows_skipped(), stream.rows_left_out()), (2, 1, 2));
    assert_eq!((stream.missing().rows, &stream.missing().values[..]), (4, &[2, 1][..]));
}

#[test]
fn a_limit_of_no_rows_gives_none() {
    let mut stream = stream("1\n2\n", options().limit(0));
    assert!(!stream.read_block(&mut Block::new(1), 10).unwrap());
}
