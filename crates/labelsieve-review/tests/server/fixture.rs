//! A small review: three classes with pictures, one of them hostile, and one without candidates.

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use labelsieve::Method;
use labelsieve::synthetic::Recipe;
use labelsieve_files::inputs::same_network::MixedNetworks;
use labelsieve_files::inputs::tables::Table;
use labelsieve_files::work::{JobCommand, JobOption, Silent};
use labelsieve_files::{read_relevance, write_csv, write_npy_f32};
use labelsieve_jobs::inputs::pools::PoolFiles;
use labelsieve_jobs::score::{Score, Share};
use labelsieve_networks::image_files::PictureSources;
use labelsieve_numerics::Device;
use labelsieve_review::{MEMORY, Review, Server, Session, Stop};
use serde_json::Value;

use crate::client::Client;

/// A text as the web may hold it.
pub const HOSTILE: &str = "\"><script>alert('1')</script>\n\u{202e}gnp.exe & <img src=x onerror=alert(2)>";
/// Classes in their order; the last has no candidates.
pub const CLASSES: [&str; 4] = ["cat", "owl", "</script>'\"", "zebra"];
/// Candidates of every class but the last.
pub const N_CANDIDATES: usize = 30;

/// Files of a review.
pub struct Fixture {
    pub folder: tempfile::TempDir,
    /// With all of them.
    pub review: Review,
}

/// A server at work.
pub struct Running {
    pub client: Client,
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.stop();
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || matches!(ended, Some(Ok(()))), "the server fails");
    }
}

pub fn pools(folder: &Path) -> PoolFiles {
    PoolFiles {
        clean: Some(Table::new(folder.join("clean.npy"))),
        class_text: None,
        pool: Table::new(folder.join("noisy.npy")),
        candidates: None,
        base: None,
        mixed: MixedNetworks::Refuse,
    }
}

/// The options by the names of their fields.
fn spell(command: &JobCommand) -> String {
    let word = |option: &JobOption| match &option.value {
        Some(value) => format!(" {}={value}", option.name),
        None => format!(" {}", option.name),
    };
    let options: String = command.options.iter().map(word).collect();
    format!("{}{options}", command.name)
}

/// Scores the examples, perhaps with decisions.
pub fn score(folder: &Path, decisions: Option<PathBuf>, output: &str) {
    score_with(folder, Method::gcn(), decisions, output);
}

/// The same with another method.
pub fn score_with(folder: &Path, method: Method, decisions: Option<PathBuf>, output: &str) {
    let job = Score {
        files: pools(folder),
        decisions,
        method,
        device: Device::Cpu,
        seed: 3,
        share: Share::All,
        output: folder.join(output),
        memory: None,
        recall: None,
    };
    job.run(&Silent::default()).unwrap();
}

/// The relevance of the candidates of a class in a file.
pub fn written(path: &Path, class: &Value) -> Vec<f32> {
    let table = read_relevance(path).unwrap();
    let rows = (0..table.ids.len()).filter(|&row| table.classes.get(row) == *class && !table.is_clean[row]);
    rows.map(|row| table.relevance[row]).collect()
}

impl Fixture {
    pub fn new() -> Fixture {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let recipe = Recipe { n_classes: 4, n_clean: 2, ..Recipe::default() };
        let task = recipe.generate(1);
        let (mut clean, mut noisy): (Vec<_>, Vec<_>) = (Vec::new(), Vec::new());
        let (mut clean_rows, mut noisy_rows) = (Vec::new(), Vec::new());
        for (class, name) in task.classes.iter().zip(CLASSES) {
            clean.extend_from_slice(class.clean.block(0..class.clean.len()));
            clean_rows.extend((0..class.clean.len()).map(|i| (format!("{name}/clean {i}.png"), name)));
            let n = if name == "zebra" { 0 } else { N_CANDIDATES };
            noisy.extend_from_slice(class.noisy.block(0..n));
            noisy_rows.extend((0..n).map(|i| (format!("{name} {i}"), name)));
        }
        noisy_rows[0].0 = HOSTILE.to_owned();
        let dim = task.classes[0].clean.dim();
        for (name, data, rows) in [("clean.npy", &clean, &clean_rows), ("noisy.npy", &noisy, &noisy_rows)] {
            write_npy_f32(File::create(root.join(name)).unwrap(), &[rows.len(), dim], data).unwrap();
            let rows = rows.iter().map(|(id, class)| [id.as_str(), *class]);
            write_csv(root.join(format!("{name}.ids.csv")), ["id", "class"], rows).unwrap();
        }
        score(root, None, "relevance.parquet");
        let captions = [[HOSTILE, HOSTILE], ["cat 1", "a cat"]];
        write_csv(root.join("captions.csv"), ["id", "caption"], captions.into_iter()).unwrap();
        write_pictures(&root.join("pictures"));
        let review = Review {
            relevance: root.join("relevance.parquet"),
            files: Some(pools(root)),
            pictures: PictureSources {
                images: vec![root.join("pictures")],
                texts: vec![root.join("captions.csv")],
                ..PictureSources::default()
            },
            output: root.join("decisions.parquet"),
            by: "ann".to_owned(),
            title: "Test".to_owned(),
            device: Device::Cpu,
            memory: MEMORY,
            spell,
        };
        Fixture { folder, review }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn serve(&self) -> Running {
        serve(self.review.open(&Silent::default()).unwrap())
    }
}

/// Answers on a free port.
pub fn serve(session: Session) -> Running {
    let server = Server::bind(IpAddr::V4(Ipv4Addr::LOCALHOST), 0).unwrap();
    let address = server.address().clone();
    let stop = server.stop();
    let base = address.url.strip_prefix(&format!("http://{}", address.socket)).unwrap().to_owned();
    let thread = std::thread::spawn(move || server.run(Arc::new(session)).unwrap());
    Running { client: Client { socket: address.socket, base }, stop, thread: Some(thread) }
}

/// A large one, a small one, one that only claims to be one, and a format that browsers do not show.
fn write_pictures(folder: &Path) {
    std::fs::create_dir_all(folder).unwrap();
    let picture =
        |width, height| image::RgbImage::from_fn(width, height, |x, y| image::Rgb([x as u8, y as u8, 7]));
    picture(400, 300).save(folder.join("cat 1.png")).unwrap();
    picture(20, 20).save(folder.join("cat 2.png")).unwrap();
    std::fs::write(folder.join("cat 3.png"), "<script>no picture</script>").unwrap();
    picture(50, 30).save(folder.join("cat 4.tif")).unwrap();
}
