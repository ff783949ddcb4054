"""BibTeX of the papers that recipes name."""

from __future__ import annotations

_ARXIV = "arXiv:"
# arXiv id -> key, title, authors, year. A test compares it with the recipes of the catalogue.
_PAPERS: dict[str, tuple[str, str, str, int]] = {
    "1503.02531": (
        "hinton2015distilling",
        "Distilling the Knowledge in a Neural Network",
        "Hinton, Geoffrey and Vinyals, Oriol and Dean, Jeff",
        2015,
    ),
    "1712.05877": (
        "jacob2017quantization",
        "Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference",
        "Jacob, Benoit and Kligys, Skirmantas and Chen, Bo and Zhu, Menglong and Tang, Matthew and Howard, Andrew and "
        "Adam, Hartwig and Kalenichenko, Dmitry",
        2017,
    ),
    "1810.04805": (
        "devlin2018bert",
        "{BERT}: Pre-training of Deep Bidirectional Transformers for Language Understanding",
        "Devlin, Jacob and Chang, Ming-Wei and Lee, Kenton and Toutanova, Kristina",
        2018,
    ),
    "1907.11692": (
        "liu2019roberta",
        "{RoBERTa}: A Robustly Optimized {BERT} Pretraining Approach",
        "Liu, Yinhan and Ott, Myle and Goyal, Naman and Du, Jingfei and Joshi, Mandar and Chen, Danqi and Levy, Omer and "
        "Lewis, Mike and Zettlemoyer, Luke and Stoyanov, Veselin",
        2019,
    ),
    "1908.08962": (
        "turc2019wellread",
        "Well-Read Students Learn Better: On the Importance of Pre-training Compact Models",
        "Turc, Iulia and Chang, Ming-Wei and Lee, Kenton and Toutanova, Kristina",
        2019,
    ),
    "1909.10351": (
        "jiao2019tinybert",
        "{TinyBERT}: Distilling {BERT} for Natural Language Understanding",
        "Jiao, Xiaoqi and Yin, Yichun and Shang, Lifeng and Jiang, Xin and Chen, Xiao and Li, Linlin and Wang, Fang and "
        "Liu, Qun",
        2019,
    ),
    "1909.11942": (
        "lan2019albert",
        "{ALBERT}: A Lite {BERT} for Self-supervised Learning of Language Representations",
        "Lan, Zhenzhong and Chen, Mingda and Goodman, Sebastian and Gimpel, Kevin and Sharma, Piyush and Soricut, Radu",
        2019,
    ),
    "1910.01108": (
        "sanh2019distilbert",
        "{DistilBERT}, a distilled version of {BERT}: smaller, faster, cheaper and lighter",
        "Sanh, Victor and Debut, Lysandre and Chaumond, Julien and Wolf, Thomas",
        2019,
    ),
    "1910.06188": (
        "zafrir2019q8bert",
        "{Q8BERT}: Quantized 8Bit {BERT}",
        "Zafrir, Ofir and Boudoukh, Guy and Izsak, Peter and Wasserblat, Moshe",
        2019,
    ),
    "2010.05609": (
        "abdaoui2020load",
        "Load What You Need: Smaller Versions of Multilingual {BERT}",
        "Abdaoui, Amine and Pradel, Camille and Sigel, Gr{\\'e}goire",
        2020,
    ),
    "2004.02984": (
        "sun2020mobilebert",
        "{MobileBERT}: a Compact Task-Agnostic {BERT} for Resource-Limited Devices",
        "Sun, Zhiqing and Yu, Hongkun and Song, Xiaodan and Liu, Renjie and Yang, Yiming and Zhou, Denny",
        2020,
    ),
    "2012.15828": (
        "wang2020minilmv2",
        "{MiniLMv2}: Multi-Head Self-Attention Relation Distillation for Compressing Pretrained Transformers",
        "Wang, Wenhui and Bao, Hangbo and Huang, Shaohan and Dong, Li and Wei, Furu",
        2020,
    ),
    "2204.00408": (
        "xia2022structured",
        "Structured Pruning Learns Compact and Accurate Models",
        "Xia, Mengzhou and Zhong, Zexuan and Chen, Danqi",
        2022,
    ),
    "2204.09656": (
        "kwon2022fast",
        "A Fast Post-Training Pruning Framework for Transformers",
        "Kwon, Woosuk and Kim, Sehoon and Mahoney, Michael W. and Hassoun, Joseph and Keutzer, Kurt and Gholami, Amir",
        2022,
    ),
}


def bibtex(paper: object) -> str | None:
    """Return the BibTeX of a recipe's `paper`, e.g. `arXiv:1910.06188`; None if it is not known here."""
    number = paper.removeprefix(_ARXIV) if isinstance(paper, str) else ""
    if number not in _PAPERS:
        return None
    key, title, authors, year = _PAPERS[number]
    fields = {"title": title, "author": authors, "journal": f"arXiv preprint {_ARXIV}{number}", "year": year}
    return "\n".join([f"@article{{{key},", *(f"  {name} = {{{value}}}," for name, value in fields.items()), "}"])
