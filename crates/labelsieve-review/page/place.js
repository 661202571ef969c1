// Where the person is: in one class, or before all of them.

import { grid } from "./grid.js";
import { strips } from "./strips.js";

export const place = { class: null, allAtOnce: false };

/** What has the cards: grid or strips. */
export const active = () => (place.allAtOnce ? strips : grid);
