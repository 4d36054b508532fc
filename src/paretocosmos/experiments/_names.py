"""How problems and methods are called in tables and pictures."""

__all__ = ["METHODS", "PROBLEMS", "device_title", "method_title", "problem_title"]

# The paper's names, in the order of its Table 1.
METHODS = {
    "single_task": "Single Task",
    "phn_epo": "PHN-EPO",
    "phn_ls": "PHN-LS",
    "pareto_mtl": "ParetoMTL",
    "cosmos": "COSMOS",
    "linear": "Weighted sum",
    "mgda": "MGDA",
    "epo": "EPO",
    "uniform": "Uniform",
}
PROBLEMS = {
    "adult": "Adult",
    "compas": "COMPAS",
    "default_credit": "Default",
    "multi_mnist": "Multi-MNIST",
    "multi_fashion": "Multi-Fashion",
    "fashion_and_mnist": "Fashion+MNIST",
    "multi_digits": "Multi-Digits",
    "celeba_easy": "CelebA, easy",
    "celeba_hard": "CelebA, hard",
    "celeba_three": "CelebA, 3 tasks",
    "celeba_four": "CelebA, 4 tasks",
    "celeba_ten": "CelebA, 10 tasks",
    "toy_convex": "Convex toy",
    "toy_concave": "Concave toy",
}


def method_title(name: str) -> str:
    """The paper's name of a method, or its own.

    >>> method_title("phn_ls"), method_title("mine:Own")
    ('PHN-LS', 'mine:Own')
    """
    return METHODS.get(name, name)


def problem_title(name: str, protocol: str | None = None) -> str:
    """The paper's name of a problem, or its own, with the protocol where one is given.

    >>> problem_title("adult", "clean")
    'Adult, clean'
    """
    title = PROBLEMS.get(name, name)
    return title if protocol is None else f"{title}, {protocol}"


def device_title(name: str) -> str:
    """A device in a sentence.

    >>> device_title("cpu"), device_title("NVIDIA H200")
    ('a CPU', 'NVIDIA H200')
    """
    return "a CPU" if name == "cpu" else name
