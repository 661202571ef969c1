// Where the person is: in one class, or before all of them.

import { grid } from "./grid.js";
import { strips } from "./strips.js";

/** `opening` is the class that is being fetched; until it is there, the person is still where they were. */
export const place = { class: null, allAtOnce: false, opening: null };

/** What has the cards: grid or strips. */
export const active = () => (place.allAtOnce ? strips : grid);

/** Classes whose candidates are on the screen, or about to be. */
export const inView = () => (place.allAtOnce ? strips.near : [place.class]).concat(place.opening).filter((c) => c !== null);
