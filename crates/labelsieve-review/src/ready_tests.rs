use std::fs::File;
use std::path::Path;

use labelsieve_files::inputs::same_network::MixedNetworks;
use labelsieve_files::inputs::tables::Table;
use labelsieve_files::work::Silent;
use labelsieve_files::{write_csv, write_npy_f32};
use labelsieve_jobs::score::{Score, Share};
use labelsieve_networks::image_files::PictureSources;
use labelsieve_numerics::Device;

use super::*;

/// Features with the ids `a0`, `a1` and so on of class `a`.
fn write(folder: &Path, name: &str, id: &str, rows: &[[f32; 2]]) -> Table {
    let path = folder.join(name);
    write_npy_f32(File::create(&path).unwrap(), &[rows.len(), 2], rows.as_flattened()).unwrap();
    let ids: Vec<String> = (0..rows.len()).map(|row| format!("{id}{row}")).collect();
    let ids = ids.iter().map(|id| [id.as_str(), "a"]);
    write_csv(folder.join(format!("{name}.ids.csv")), ["id", "class"], ids).unwrap();
    Table::new(path)
}

#[test]
fn a_class_from_disk_and_one_in_memory_number_candidates_alike_although_one_is_a_copy() {
    let folder = tempfile::tempdir().unwrap();
    let files = PoolFiles {
        clean: Some(write(folder.path(), "clean.npy", "c", &[[1.0, 0.0]])),
        class_text: None,
        pool: write(folder.path(), "noisy.npy", "n", &[[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]]),
        candidates: None,
        base: None,
        mixed: MixedNetworks::Refuse,
    };
    let score = Score {
        files: files.clone(),
        decisions: None,
        method: Method::gcn(),
        device: Device::Cpu,
        seed: 0,
        share: Share::All,
        output: folder.path().join("relevance.parquet"),
        memory: None,
        recall: None,
    };
    score.run(&Silent::default()).unwrap();
    let silent = Silent::default();
    let contents = Contents::open(&score.output, &PictureSources::default(), &silent).unwrap();
    let device = labelsieve_jobs::device::open(Device::Cpu, &silent).unwrap();
    let scorer = Scorer::open(&files, &contents, device, &silent).unwrap();
    let ready = scorer.ready(0, &contents, &Method::gcn(), &Watch::new()).unwrap();
    let read = scorer.candidates(0, &contents).unwrap();
    assert_eq!((read.features.len(), &read.features), (2, ready.pool.features()));
    assert_eq!(read.row_of, ready.row_of);
}
