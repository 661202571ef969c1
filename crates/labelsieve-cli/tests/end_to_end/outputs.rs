//! Outputs: formats by extension, stdout, and outputs that would replace other files.

use std::path::Path;

use crate::common::{bytes, listing, refuses, run, shell};
use crate::examples::{class_name, clean_of, noisy_of, read_parquet, task_folder, write_truth};

const SCORE: &str = "score --clean C.npz --pool N.npz";
const TRAIN: &str = "train --clean C.npz --pool N.npz --relevance R.parquet";

fn text(folder: &Path, name: &str) -> String {
    String::from_utf8(bytes(folder, name)).expect("text")
}

fn write(folder: &Path, name: &str, contents: &str) {
    std::fs::write(folder.join(name), contents).expect("disk space");
}

/// Classes and texts for `match`.
fn write_texts(folder: &Path) {
    let classes =
        "[[class]]\nid = \"barn, owl\"\nnames = [\"owl\"]\n\n[[class]]\nid = \"cat\"\nnames = [\"cat\"]\n";
    write(folder, "classes.toml", classes);
    write(folder, "texts.csv", "id,title\na,an owl\n\"b \"\"x\"\"\",a cat and an owl\nc,nothing\n");
}

#[test]
fn the_ending_decides_and_others_are_refused_before_any_work() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    // No input exists: a name that is refused costs not even a look at them.
    for (line, endings) in [
        ("score --clean C --pool N -o R.txt", ".parquet or .csv, or - for CSV on stdout"),
        ("score --clean C --pool N -o R", ".parquet or .csv, or - for CSV on stdout"),
        ("score --clean C --pool N -o R.tsv", ".parquet or .csv, or - for CSV on stdout"),
        ("match --classes K --text T -o c.json", ".parquet or .csv, or - for CSV on stdout"),
        ("match --classes K --text T -o c.parquet --stats s.csv", ".json"),
        ("predict --model M --features F -o p.npz", ".parquet, .csv or .tsv, or - for CSV on stdout"),
        ("train --clean C --pool N --relevance R -o m.pt", ".safetensors"),
        ("train --clean C --pool N --relevance R -o -", ".safetensors"),
        ("finetune --network N --images I --relevance R -o m.pth", ".safetensors"),
        ("pretrain --images I -o m.onnx", ".safetensors"),
        ("embed --model M --images I -o e.csv", ".parquet, .npz or .npy"),
        ("embed --model M --images I -o e.npz --fit-pca 3 --pca-output p.npz", ".safetensors"),
        ("report R -o r.pdf", ".html or .htm"),
        ("classes K -o k.csv", ".toml"),
    ] {
        let message = format!("the extension must be {endings}\nhint: the extension decides the format");
        refuses(folder, line, &[&message]);
    }
}

#[test]
fn relevance_as_csv_is_the_relevance_of_parquet_and_read_wherever_that_is() {
    let (folder, task) = task_folder();
    let folder = folder.path();
    run(folder, &format!("{SCORE} -o R.parquet")).ok();
    run(folder, &format!("{SCORE} -o R.csv")).ok();
    let csv = text(folder, "R.csv");
    let header = "id,class,relevance,probability,is_clean,matched_name,best_clean,best_clean_similarity,reciprocal_neighbours\n";
    assert!(csv.starts_with(&format!("{header}0,0,1,1,true,,,,\n")), "{}", &csv[..200]);
    let rows: usize = read_parquet(folder.join("R.parquet")).iter().map(|batch| batch.num_rows()).sum();
    assert_eq!(csv.lines().count(), rows + 1);
    assert!(!folder.join("R.csv.partial").exists());

    // To the bit: every command makes the same of both.
    write_truth(&task, folder.join("truth.parquet"));
    run(folder, &format!("{TRAIN} -o m.safetensors")).ok();
    run(folder, &format!("{} -o n.safetensors", TRAIN.replace("R.parquet", "R.csv"))).ok();
    assert!(bytes(folder, "m.safetensors") == bytes(folder, "n.safetensors"));
    let evaluate =
        |name: &str| run(folder, &format!("evaluate --relevance {name} --truth truth.parquet")).ok().out;
    assert_eq!(evaluate("R.csv"), evaluate("R.parquet"));
    let report = |name: &str| {
        let said = run(folder, &format!("report {name} -o page.html")).ok().err;
        said.split("; ").next().expect("one part").to_owned()
    };
    assert_eq!(report("R.csv"), report("R.parquet"));
}

#[test]
fn candidates_as_csv_serve_as_those_of_parquet_do() {
    let (folder, task) = task_folder();
    let folder = folder.path();
    clean_of(&task).parquet(folder.join("C.parquet"), "c");
    noisy_of(&task).parquet(folder.join("N.parquet"), "n, \"");
    let classes: String = (0..6)
        .map(|class| format!("[[class]]\nid = \"{0}\"\nnames = [\"{0}\"]\n\n", class_name(class)))
        .collect();
    write(folder, "classes.toml", &classes);
    let noisy = noisy_of(&task).classes;
    let rows = noisy.iter().enumerate();
    let texts: String =
        rows.map(|(i, &class)| format!("\"n, \"\"{i}\",one {}\n", class_name(class))).collect();
    write(folder, "texts.csv", &format!("id,title\n{texts}"));
    for name in ["c.parquet", "c.csv"] {
        run(folder, &format!("match --classes classes.toml --text texts.csv -o {name}")).ok();
        let clean = format!("score --clean C.parquet --pool N.parquet --candidates {name} -o {name}.csv");
        run(folder, &clean).ok();
    }
    let relevance = text(folder, "c.parquet.csv");
    assert_eq!(relevance.lines().count(), 1 + noisy.len() + clean_of(&task).len());
    assert!(relevance.contains("\"n, \"\"0\",barn owl,") && relevance.contains(",barn owl,c"), "{relevance}");
    assert_eq!(relevance, text(folder, "c.csv.csv"));
}

#[test]
fn a_dash_writes_csv_to_stdout_and_everything_else_to_stderr() {
    let (folder, _) = task_folder();
    let folder = folder.path();
    let before = listing(folder);
    let clean = run(folder, &format!("{SCORE} -o -")).ok();
    assert!(clean.err.contains("an interrupted run cannot be resumed"), "{}", clean.err);
    assert_eq!(listing(folder), before, "neither a file nor a journal");
    run(folder, &format!("{SCORE} -o R.csv")).ok();
    assert!(clean.out == text(folder, "R.csv"));

    write_texts(folder);
    let found = run(folder, "match --classes classes.toml --text texts.csv -o -").ok();
    let expected = "id,class,matched_name,field,leak_of,leak_similarity\na,\"barn, owl\",owl,title,,\n";
    assert!(found.out.starts_with(expected), "{}", found.out);
    assert!(found.out.contains("\n\"b \"\"x\"\"\",cat,cat,title,,\n"), "{}", found.out);
    assert!(found.err.contains("candidates"), "the statistics: {}", found.err);

    run(folder, &format!("{SCORE} -o R.parquet")).ok();
    run(folder, &format!("{TRAIN} -o M.safetensors")).ok();
    let predict = "predict --model M.safetensors --features T.npz";
    let csv = run(folder, &format!("{predict} -o -")).ok().out;
    let tsv = run(folder, predict).ok().out;
    assert!(
        csv.starts_with("id,rank,class,score,probability,typicality\n0,1,")
            && tsv.starts_with("id\trank\tclass\tscore\tprobability\ttypicality\n0\t1\t")
    );
    run(folder, &format!("{predict} -o p.csv")).ok();
    run(folder, &format!("{predict} -o p.tsv")).ok();
    assert_eq!((text(folder, "p.csv"), text(folder, "p.tsv")), (csv, tsv));
    // A reader that leaves early is no failure here either.
    assert_eq!(shell(folder, "$LABELSIEVE -q score --clean C.npz --pool N.npz -o - | head -1").ok().err, "");
}

#[test]
fn predictions_stay_one_line_each_and_ids_that_are_row_numbers_are_said_to_be() {
    let (folder, task) = task_folder();
    let folder = folder.path();
    run(folder, &format!("{SCORE} -o R.parquet")).ok();
    // Class names with a tab, a backslash and an escape code; below, ids of two lines.
    let labels = clean_of(&task).classes;
    let name = |class: usize| format!("c\\{class}\t\u{1b}[31m");
    write(
        folder,
        "labels.txt",
        &labels.iter().map(|&class| format!("{}x\n", name(class))).collect::<String>(),
    );
    let relevance = text_with_classes(folder, &name);
    write(folder, "S.csv", &relevance);
    clean_of(&task).npy(folder.join("C.npy"));
    let line =
        "train --clean C.npy --clean-labels labels.txt --pool N.npz --relevance S.csv -o M.safetensors";
    run(folder, line).ok();
    let said = run(folder, "predict --model M.safetensors --features T.npz --top 2").ok();
    assert!(said.err.contains("`T.npz` has no ids; using row numbers"), "{}", said.err);
    assert!(said.out.lines().all(|line| line.split('\t').count() == 6), "{}", said.out);
    assert!(said.out.contains("\tc\\\\0\\t\\u{1b}[31mx\t"), "{}", said.out);
    let csv = run(folder, "predict --model M.safetensors --features T.npz -o -").ok().out;
    assert!(csv.contains(&format!(",{}x,", name(0))), "CSV keeps the name as it is: {csv}");
    noisy_of(&task).parquet(folder.join("N.parquet"), "two\nlines ");
    let named = run(folder, "predict --model M.safetensors --features N.parquet").ok();
    assert!(!named.err.contains("row numbers"), "{}", named.err);
    assert_eq!(named.out.lines().count(), 1 + noisy_of(&task).len());
    assert!(named.out.contains("\ntwo\\nlines 0\t1\t"), "{}", named.out);
}

/// The relevance of the folder with other class names, as somebody's script would write it: no reasons, 1 and 0.
fn text_with_classes(folder: &Path, name: &dyn Fn(usize) -> String) -> String {
    run(folder, &format!("{SCORE} -o R.csv")).ok();
    let mut rows = String::from("relevance,id,class,is_clean\n");
    for line in text(folder, "R.csv").lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let class = name(cells[1].parse().expect("a number"));
        rows.push_str(&format!("{},{},{class}x,{}\n", cells[2], cells[0], u8::from(cells[3] == "true")));
    }
    rows
}

#[test]
fn more_guesses_than_classes_are_as_many_as_classes() {
    let (folder, _) = task_folder();
    let folder = folder.path();
    run(folder, &format!("{SCORE} -o R.parquet")).ok();
    run(folder, &format!("{TRAIN} -o M.safetensors")).ok();
    let predict = |top: &str| {
        let line = format!(
            "ulimit -v 8000000; $LABELSIEVE --threads 2 predict --model M.safetensors --features N.npz --top {top}"
        );
        shell(folder, &line).ok().out
    };
    let all = predict("6");
    for top in ["100000", "1000000000000", "18446744073709551615"] {
        assert!(predict(top) == all, "{top}");
    }
}

#[test]
fn an_output_in_the_place_of_any_file_of_the_command_is_refused() {
    let (folder, task) = task_folder();
    let folder = folder.path();
    write_texts(folder);
    noisy_of(&task).parquet(folder.join("N.parquet"), "n");
    noisy_of(&task).clip_retrieval(&folder.join("clip"), "n");
    clean_of(&task).parquet(folder.join("C.parquet"), "c");
    run(folder, &format!("{SCORE} -o R.parquet")).ok();
    run(folder, &format!("{TRAIN} -o W.safetensors")).ok();
    write_truth(&task, folder.join("truth.parquet"));
    write(folder, "labels.txt", "x");
    std::fs::create_dir(folder.join("photos")).expect("disk space");
    for name in ["a.png", "b.html", "metadata.csv"] {
        write(folder, &format!("photos/{name}"), "no picture");
    }
    // Other names of the same files: links of both kinds, with the endings that outputs need.
    for (target, link) in [
        ("N.npz", "N-link.parquet"),
        ("classes.toml", "classes-link.csv"),
        ("texts.csv", "texts-link.json"),
        ("truth.parquet", "truth-link.html"),
        ("photos/a.png", "a-link.parquet"),
        ("photos/a.png", "a-link.safetensors"),
        ("photos/a.png", "a-link.html"),
        ("labels.txt", "labels-link.safetensors"),
        ("clip/img_emb/img_emb_0000.npy", "clip-link.csv"),
        ("R.parquet", "R-link.html"),
        ("C.npz", "C-link.safetensors"),
        ("R.parquet", "R-link.safetensors"),
        ("W.safetensors", "W-link.tsv"),
        ("classes.toml", "classes-link.json"),
    ] {
        std::fs::hard_link(folder.join(target), folder.join(link)).expect("disk space");
    }
    std::os::unix::fs::symlink("W.safetensors", folder.join("W-symlink.safetensors")).expect("disk space");
    let guarded =
        "match --classes classes.toml --text texts.csv --features N.parquet --guard-features C.parquet";
    let finetune = "finetune --network W.safetensors --images photos/a.png --relevance R.parquet";
    for (line, output) in [
        (SCORE.to_owned(), "N-link.parquet"),
        (format!("{SCORE} --candidates R.parquet"), "R.parquet"),
        (
            "score --clean C.parquet --pool clip --candidates R.parquet".into(),
            "clip/metadata/metadata_0001.parquet",
        ),
        ("score --clean C.parquet --pool clip --candidates R.parquet".into(), "clip-link.csv"),
        (guarded.to_owned(), "N.parquet"),
        (guarded.to_owned(), "C.parquet"),
        (guarded.to_owned(), "texts.csv"),
        (guarded.to_owned(), "classes-link.csv"),
        (format!("{guarded} --stats texts-link.json"), "c.parquet"),
        (format!("{guarded} --stats classes-link.json"), "c.parquet"),
        (format!("{TRAIN} --base W.safetensors"), "W.safetensors"),
        (format!("{TRAIN} --base W.safetensors"), "W-symlink.safetensors"),
        (TRAIN.to_owned(), "R-link.safetensors"),
        (TRAIN.to_owned(), "C-link.safetensors"),
        (format!("{TRAIN} --clean-labels labels.txt"), "labels-link.safetensors"),
        (finetune.to_owned(), "W.safetensors"),
        (finetune.to_owned(), "a-link.safetensors"),
        (finetune.to_owned(), "R-link.safetensors"),
        ("predict --model W.safetensors --features N.parquet".into(), "N.parquet"),
        ("predict --model W.safetensors --features N.parquet".into(), "W-link.tsv"),
        ("predict --model W.safetensors --images photos/a.png".into(), "a-link.parquet"),
        ("embed --model W.safetensors --images photos/a.png".into(), "a-link.parquet"),
        ("pretrain --images photos/a.png".into(), "a-link.safetensors"),
        ("report R.parquet --truth truth.parquet".into(), "truth-link.html"),
        ("report R.parquet".into(), "R-link.html"),
        ("report R.parquet --images photos".into(), "photos/b.html"),
        ("report R.parquet --images photos".into(), "a-link.html"),
        ("classes classes.toml".into(), "classes.toml"),
    ] {
        let before = bytes_of_all(folder);
        let written =
            if line.contains("--stats") { line.split(' ').next_back().unwrap_or("") } else { output };
        let message = format!("the output `{written}` would replace the input `");
        refuses(folder, &format!("{line} -o {output}"), &[&message, "hint: choose another name"]);
        assert!(bytes_of_all(folder) == before, "{line} -o {output}");
    }
    refuses(
        folder,
        "embed --model W.safetensors --images photos/a.png -o e.parquet --fit-pca 2 --pca-output W.safetensors",
        &["the output `W.safetensors` would replace the input `W.safetensors`"],
    );
    for line in [
        format!("{guarded} --stats out.json -o ./out.json"),
        "embed --model W.safetensors --images photos/a.png --fit-pca 2 --pca-output Z.safetensors -o Z.safetensors".into(),
    ] {
        run(folder, &line).fails_with(&["the extension must be"]); // two kinds of outputs share no ending
    }
}

fn bytes_of_all(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let names = listing(folder).into_iter().filter(|name| folder.join(name).is_file());
    names.map(|name| (name.clone(), bytes(folder, &name))).collect()
}

#[test]
fn a_side_file_in_the_place_of_an_input_or_an_output_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for name in ["a.png", "m.safetensors"] {
        write(folder, name, "anything");
    }
    std::fs::hard_link(folder.join("a.png"), folder.join("e.npy.skipped.csv")).expect("disk space");
    let embed = "embed --model m.safetensors --images a.png -o e.npy";
    refuses(folder, embed, &["the output `e.npy.skipped.csv` would replace the input `a.png`"]);
    std::fs::rename(folder.join("e.npy.skipped.csv"), folder.join("e.npy.ids.csv")).expect("disk space");
    refuses(folder, embed, &["the output `e.npy.ids.csv` would replace the input `a.png`"]);
    std::fs::rename(folder.join("e.npy.ids.csv"), folder.join("n.accuracy.svg")).expect("disk space");
    let pretrain = "pretrain --images a.png -o n.safetensors";
    refuses(folder, pretrain, &["the output `n.accuracy.svg` would replace the input `a.png`"]);
}

#[test]
fn curves_replace_curves_and_nothing_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    write(folder, "a.png", "no picture");
    write(folder, "n.accuracy.svg", "<svg xmlns=\"http://www.w3.org/2000/svg\">my drawing</svg>\n");
    let pretrain = "pretrain --images a.png -o n.safetensors";
    let message = "`n.accuracy.svg` exists and is not a curve made by labelsieve";
    refuses(folder, pretrain, &[message, "hint: move it elsewhere"]);
    let (tasks, _) = task_folder();
    run(tasks.path(), &format!("{SCORE} -o R.parquet")).ok();
    run(tasks.path(), "report R.parquet --figures figures").ok();
    let figure = listing(&tasks.path().join("figures")).first().cloned().expect("a figure");
    run(tasks.path(), "report R.parquet --figures figures").ok(); // its own figures
    std::fs::copy(tasks.path().join("figures").join(&figure), folder.join("n.accuracy.svg"))
        .expect("disk space");
    run(folder, pretrain).fails_with(&["too few to train on"]); // past the check
    write(tasks.path(), &format!("figures/{figure}"), "my drawing");
    let message = "output: expected a new file or a figure made by labelsieve, found some other file";
    refuses(tasks.path(), "report R.parquet --figures figures", &[&figure, message]);
}

/// A table that pandas read and wrote: numbers as double precision, dictionaries as large texts, an index.
#[test]
fn relevance_that_went_through_pandas_is_taken_by_every_command() {
    use std::sync::Arc;

    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float32Type, UInt32Type};
    use arrow_array::{ArrayRef, Float64Array, Int64Array, LargeStringArray};

    let (folder, task) = task_folder();
    let folder = folder.path();
    run(folder, &format!("{SCORE} -o R.parquet")).ok();
    let batches = read_parquet(folder.join("R.parquet"));
    let batch = batches.first().expect("rows");
    let column = |name: &str| batch.column_by_name(name).expect("a column");
    let large = |array: &ArrayRef| -> ArrayRef {
        Arc::new(LargeStringArray::from_iter(array.as_string::<i32>().iter()))
    };
    let classes = column("class").as_any_dictionary();
    let names = classes.values().as_string::<i32>();
    let classes = classes.normalized_keys().into_iter().map(|key| names.value(key).to_owned());
    let doubles = |name: &str| -> ArrayRef {
        let values = column(name).as_primitive::<Float32Type>().iter();
        Arc::new(Float64Array::from_iter(values.map(|value| value.map(f64::from))))
    };
    let neighbours = column("reciprocal_neighbours").as_primitive::<UInt32Type>().iter();
    let neighbours = Float64Array::from_iter(neighbours.map(|value| Some(value.map_or(f64::NAN, f64::from))));
    crate::examples::write_parquet(
        folder.join("S.parquet"),
        [
            ("id", large(column("id"))),
            ("class", Arc::new(LargeStringArray::from_iter_values(classes)) as ArrayRef),
            ("relevance", doubles("relevance")),
            ("probability", doubles("probability")),
            ("is_clean", column("is_clean").clone()),
            ("matched_name", large(column("matched_name"))),
            ("best_clean", large(column("best_clean"))),
            ("best_clean_similarity", doubles("best_clean_similarity")),
            ("reciprocal_neighbours", Arc::new(neighbours)),
            ("__index_level_0__", Arc::new(Int64Array::from_iter_values(0..batch.num_rows() as i64))),
        ],
    );
    write_truth(&task, folder.join("truth.parquet"));
    for line in [
        "train --clean C.npz --pool N.npz --relevance F.parquet -o F.safetensors",
        "evaluate --relevance F.parquet --truth truth.parquet",
        "report F.parquet -o F.html",
    ] {
        let finished = ["R", "S"].map(|name| run(folder, &line.replace("F.", &format!("{name}."))).ok());
        assert_eq!(finished[0].out, finished[1].out, "{line}");
    }
    assert!(bytes(folder, "R.safetensors") == bytes(folder, "S.safetensors"));
}

#[test]
fn many_candidates_take_little_memory() {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, DictionaryArray, Int32Array, RecordBatch, StringArray};
    use parquet::arrow::ArrowWriter;

    let (folder, _) = task_folder();
    let folder = folder.path();
    if shell(folder, "ulimit -v 2000000").code != Some(0) {
        eprintln!("skipped: memory cannot be limited here");
        return;
    }
    // Equal rows: next to nothing in a file.
    const ROWS: usize = 1_000_000;
    let equal = |text: &str| -> ArrayRef {
        let texts = Arc::new(StringArray::from(vec![text]));
        Arc::new(DictionaryArray::new(Int32Array::from(vec![0; ROWS]), texts))
    };
    let columns = [("id", equal("0")), ("class", equal("0")), ("matched_name", equal("owl"))];
    let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
    let file = std::fs::File::create(folder.join("c.parquet")).expect("disk space");
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).expect("a schema");
    for _ in 0..20 {
        writer.write(&batch).expect("disk space");
    }
    writer.close().expect("disk space");
    let line = "score --clean C.npz --pool N.npz --candidates c.parquet --method beta --threads 1 -o R.csv";
    shell(folder, &format!("ulimit -v 2000000; $LABELSIEVE {line}")).ok();
    assert_eq!(text(folder, "R.csv").lines().filter(|line| line.contains(",false,owl,")).count(), 1);
}

#[test]
fn control_characters_in_names_do_not_reach_the_terminal() {
    let (folder, _) = task_folder();
    let folder = folder.path();
    let mut command = crate::common::command(folder, "score --clean C.npz -o R.parquet --pool");
    let missing = command.arg("\u{1b}]0;title\u{7}.npz").output().expect("it starts");
    let missing = String::from_utf8(missing.stderr).expect("text");
    assert!(missing.contains("`\\u{1b}]0;title\\u{7}.npz`"), "{missing:?}");
    // Tables on stdout too.
    write(
        folder,
        "classes.toml",
        "[[class]]\nid = \"red\\u001b[31m\"\ndisplay_name = \"a \\u001b[31m\"\nnames = [\"owl\"]\n",
    );
    write(folder, "texts.csv", "id,title\na,an owl\n");
    let table = run(folder, "match --classes classes.toml --text texts.csv -o c.csv").ok().out;
    assert!(table.contains("a \\u{1b}[31m") && !table.contains('\u{1b}'), "{table:?}");
    assert!(text(folder, "c.csv").contains("a,red\u{1b}[31m,owl"), "data stays as it is");
}

#[test]
fn new_files_have_the_permissions_that_the_umask_leaves_and_old_ones_keep_theirs() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, _) = task_folder();
    let folder = folder.path();
    let mode =
        |name: &str| std::fs::metadata(folder.join(name)).expect("a file").permissions().mode() & 0o777;
    for (umask, expected) in [("077", 0o600), ("027", 0o640), ("022", 0o644), ("002", 0o664)] {
        let name = format!("R-{umask}.parquet");
        shell(folder, &format!("umask {umask}; $LABELSIEVE {SCORE} --method beta -o {name}")).ok();
        assert_eq!(mode(&name), expected, "umask {umask}");
    }
    shell(folder, &format!("umask 022; $LABELSIEVE {SCORE} --method beta -o R-077.parquet")).ok();
    assert_eq!(mode("R-077.parquet"), 0o600, "what was private stays private");
}
