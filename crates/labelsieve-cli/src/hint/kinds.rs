//! Files that are something else: how to get from what they are to what is wanted.

use std::path::Path;

use labelsieve_files::work::shell_word::shell_word;
use labelsieve_files::{ExpectedFile, FileKind};

/// A hint about a file that is `found` where something else is wanted; `None` when it may just be damaged.
pub fn for_kind(path: &Path, wanted: Option<ExpectedFile>, found: FileKind) -> Option<String> {
    Some(match (found, wanted) {
        (FileKind::Empty, _) => "the file is empty; write or download it again".to_owned(),
        (FileKind::Html, _) => {
            "it is a web page, perhaps the error page of a download; download the file itself".to_owned()
        }
        (FileKind::GitLfsPointer, _) => {
            "the file itself was not downloaded; run `git lfs pull` in its repository".to_owned()
        }
        (FileKind::Image | FileKind::ImageFolder | FileKind::Tar, Some(ExpectedFile::Features)) => embed_first(path),
        (FileKind::PyTorch, Some(ExpectedFile::Tensors)) => convert_network(path),
        (FileKind::PyTorch, Some(ExpectedFile::Features)) => convert_features(path),
        (FileKind::Onnx, Some(ExpectedFile::Tensors)) => format!(
            "ONNX files make features: `labelsieve embed --model {}`; classify those, with a classifier from `labelsieve train`",
            shell_word(path)
        ),
        (FileKind::Hdf5, Some(ExpectedFile::Tensors)) => {
            "networks are read from .safetensors files with torchvision's names for a ResNet; export the weights from \
             PyTorch, or make a network with `labelsieve pretrain`"
                .to_owned()
        }
        (FileKind::Gzip, Some(_)) => format!("unpack it first: `gunzip {}`", shell_word(path)),
        (FileKind::Npy | FileKind::Npz | FileKind::Parquet, Some(ExpectedFile::Features)) => rename(path, found),
        (FileKind::Safetensors, Some(ExpectedFile::Tensors)) => return None,
        (FileKind::Folder, Some(ExpectedFile::Features)) => {
            "pass a file of features from `labelsieve embed`".to_owned()
        }
        (FileKind::Text, Some(ExpectedFile::Features)) => {
            "save features with `numpy.save`, or make them from images with `labelsieve embed`".to_owned()
        }
        (FileKind::Text, Some(ExpectedFile::Images)) if path.file_stem().is_some_and(|stem| stem == "metadata") => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            format!("pass the folder that it describes: `{}`", folder.unwrap_or(Path::new(".")).display())
        }
        (FileKind::Image | FileKind::Tar | FileKind::Parquet, Some(ExpectedFile::Images)) => {
            format!("it is {found}; rename it accordingly")
        }
        (FileKind::Npy | FileKind::Npz, Some(ExpectedFile::Images)) => {
            "it looks like features; pass the images themselves".to_owned()
        }
        (FileKind::Image | FileKind::ImageFolder | FileKind::Tar, Some(ExpectedFile::Parquet)) => {
            "this option takes a table; pass images with --images".to_owned()
        }
        (FileKind::Text, Some(ExpectedFile::Parquet)) => {
            let csv = path.with_extension("csv");
            format!("if it is CSV, rename it to `{}`: the format is taken from the extension", csv.display())
        }
        (FileKind::Safetensors, Some(_)) => {
            "it is a network or a classifier; pass it with --model".to_owned()
        }
        (FileKind::Parquet, Some(ExpectedFile::Tensors)) | (FileKind::Npy | FileKind::Npz, Some(ExpectedFile::Tensors)) => {
            "it holds a table; networks and classifiers are .safetensors files, as `labelsieve pretrain` and \
             `labelsieve train` write them"
                .to_owned()
        }
        (FileKind::Text, Some(ExpectedFile::Tensors)) => {
            "networks and classifiers are .safetensors files, as `labelsieve pretrain` and `labelsieve train` write them"
                .to_owned()
        }
        _ => return None,
    })
}

/// How to get features of images.
pub fn embed_first(images: &Path) -> String {
    let name = images.file_stem().unwrap_or_default();
    format!(
        "compute features of the images first: `labelsieve embed --model NETWORK.safetensors --images {} -o {}`, then \
         give that file",
        shell_word(images),
        shell_word(Path::new(name).with_extension("parquet"))
    )
}

/// Weights in a nested `state_dict`, of a network wrapped for several GPUs, sharing memory or not contiguous: all of
/// these are common, and safetensors refuses the last two.
fn convert_network(path: &Path) -> String {
    format!(
        "convert it: `python -c \"import sys, torch, safetensors.torch as s; w = torch.load(sys.argv[1], \
         map_location='cpu', weights_only=True); w = w.get('state_dict', w.get('model', w)); \
         s.save_file({{k.removeprefix('module.'): v.clone(memory_format=torch.contiguous_format) for k, v in w.items() \
         if torch.is_tensor(v)}}, sys.argv[2])\" {} {}`",
        shell_word(path),
        shell_word(path.with_extension("safetensors"))
    )
}

fn convert_features(path: &Path) -> String {
    format!(
        "convert it: `python -c \"import sys, torch, numpy; numpy.save(sys.argv[2], torch.load(sys.argv[1], \
         map_location='cpu', weights_only=True).float().numpy())\" {} {}`",
        shell_word(path),
        shell_word(path.with_extension("npy"))
    )
}

/// For what is read by its ending.
fn rename(path: &Path, found: FileKind) -> String {
    let ending = match found {
        FileKind::Npy => "npy",
        FileKind::Npz => "npz",
        _ => "parquet",
    };
    format!("it is {found}; rename it to `{}`", path.with_extension(ending).display())
}
