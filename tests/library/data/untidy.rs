//! Untidy files: marks of missing values, bad cells as gaps, and circular columns, in text and in arrays.

use gmm_bmm::data::*;

use super::*;

/// A `.npy` file of one column of doubles.
fn npy(values: &[f64]) -> Vec<u8> {
    let mut header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({}, 1), }}", values.len());
    header += &" ".repeat(117 - header.len());
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.into_bytes());
    values.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
    bytes
}

#[test]
fn marks_of_missing_values_are_gaps_in_every_format_and_mode() {
    let marks = || options().missing_marks(["-999", "n.d."]);
    // A blank within quotes keeps the fast path from the line.
    for odd in ["-999.0", "-9.99e2", "n.D.", "\" -999\"", ""] {
        let text = format!("x,y\n1,2\n{odd},3\n4,-999\n5,6\n");
        let (_, rows) = read(&text, marks().missing(Missing::Marginal));
        let missing: Vec<usize> =
            rows.iter().flatten().enumerate().filter(|(_, v)| v.is_nan()).map(|(i, _)| i).collect();
        assert_eq!(missing, [2, 5], "{odd:?}");
        assert_eq!(read(&text, marks().missing(Missing::Skip)).1, [[1.0, 2.0], [5.0, 6.0]], "{odd:?}");
        assert_says(&error(&text, marks()), &["row 2: the value in column 'x' is missing", "1 in 'x'"]);
    }
    assert!(matches!(error("x\n1\nn.d.\n", options()), DataError::BadRow(_)));
    let array = npy(&[1.0, -999.0, 2.0]);
    assert_eq!(read(&array, marks().missing(Missing::Skip)).1, [[1.0], [2.0]]);
    assert!(read(&array, marks().missing(Missing::Marginal)).1[1][0].is_nan());
    assert_says(&error(&array, marks()), &["row 2: the value in column 'c1' is missing"]);
}

#[test]
fn a_bad_cell_can_be_a_gap() {
    let gaps = || options().bad_cells(BadCells::Missing);
    let text = "x,y,z\n1,2,3\ntall,5,1e999\n7,,9\n1,2\n";
    let mut rows = open(text, gaps().missing(Missing::Marginal).bad_rows(BadRows::Skip)).unwrap();
    let all = rows.read_all().unwrap();
    assert_eq!(all.row(0), [1.0, 2.0, 3.0]);
    assert!(all.row(1)[0].is_nan() && all.row(1)[1] == 5.0 && all.row(1)[2].is_nan());
    assert_eq!((all.rows(), rows.bad_cells(), rows.rows_skipped()), (3, 2, 1));
    assert_eq!(rows.missing().values, [1, 1, 1]);
    let first = rows.first_bad_cell().unwrap().to_string();
    assert!(first.contains("row 2: 'tall' in column 'x' is not a number"), "{first}");
    assert!(matches!(error(text, gaps()), DataError::MissingValue(_)));
    // A stray quotation mark still does not take rows along.
    let stray = "x,y\n1,2\n\"3,4\n5,6\n7\",8\n";
    assert!(matches!(error(stray, gaps().missing(Missing::Marginal)), DataError::Quotation { .. }));
    let array = npy(&[1.0, f64::INFINITY, 2.0]);
    let mut rows = open(&array, gaps().missing(Missing::Marginal)).unwrap();
    assert!(rows.read_all().unwrap().row(1)[0].is_nan() && rows.bad_cells() == 1);
}

#[test]
fn a_circular_column_is_two_columns_and_a_model_s_is_found_by_its_name() {
    let wind = |low, high| Circular::new("wind", low, high);
    let text = "a,wind\n1,0\n2,90\n3,360\n";
    let mut rows = open(text, options().circular(wind(0.0, 360.0))).unwrap();
    assert_eq!(rows.columns().names, ["a", "wind.cos", "wind.sin"]);
    let all = rows.read_all().unwrap();
    for (found, expected) in all.values().iter().zip([1.0, 1.0, 0.0, 2.0, 0.0, 1.0, 3.0, 1.0, 0.0]) {
        assert!((found - expected).abs() < 1e-12, "{:?}", all.values());
    }
    // The columns of a model, in a file with another order.
    let known = rows.columns().clone();
    let (columns, found) = read("wind,b,a\n90,7,2\n", options().expected(known.clone()));
    assert_eq!((columns, found), (known.names.clone(), vec![all.row(1).to_vec()]));
    assert!(matches!(
        error("a,b\n1,2\n", options().expected(known.clone())),
        DataError::ExpectedColumn { .. }
    ));
    let other = options().expected(known.clone()).circular(wind(0.0, 400.0));
    assert!(matches!(error(text, other), DataError::NotCircularInModel(_)));
    assert_eq!(read(text, options().expected(known).circular(wind(0.0, 360.0))).1.len(), 3);
    let dropped = options().circular(wind(0.0, 360.0)).drop(["wind"]);
    assert!(matches!(error(text, dropped), DataError::CircularNotRead(_)));
    let out = "a,wind\n1,0\n2,-999\n";
    assert_says(
        &error(out, options().circular(wind(0.0, 360.0))),
        &["row 2: -999 is out of the range", "'wind'"],
    );
    let gaps = options().circular(wind(0.0, 360.0)).bad_cells(BadCells::Missing).missing(Missing::Marginal);
    let mut rows = open(out, gaps).unwrap();
    let all = rows.read_all().unwrap();
    assert!(all.row(1)[0] == 2.0 && all.row(1)[1].is_nan() && all.row(1)[2].is_nan());
    assert_eq!((rows.bad_cells(), &rows.missing().values[..]), (1, &[0, 1, 1][..]));
}
