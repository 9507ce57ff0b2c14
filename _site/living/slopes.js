// Chapter 4's random numbers: the eight scores of Figure 4.2, and the medians of Figure 4.3 at the
// widths 1, 2, 4, …, 1024, undivided, divided by the root of the width, and by the width.

export const SCORES = [-0.4641, 2.1748, -7.9791, -10.6717, 7.8835, 6.6576, -1.6211, -3.2011];

export const MEDIANS = {
  one: [
    0.1004, 0.0802, 0.0466, 0.0184, 0.004, 3.663e-4, 1.774e-5, 2.412e-7, 1.071e-10, 1.403e-15,
    4.861e-20,
  ],
  root: [0.1004, 0.0939, 0.087, 0.0828, 0.085, 0.0797, 0.0817, 0.0807, 0.0769, 0.0705, 0.08],
  width: [0.1004, 0.1016, 0.1034, 0.1051, 0.1082, 0.1077, 0.109, 0.1091, 0.1089, 0.1088, 0.1093],
};
