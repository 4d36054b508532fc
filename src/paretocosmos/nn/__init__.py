"""Networks: backbones, ways to condition them on a ray, and the layers and kernels they share."""
