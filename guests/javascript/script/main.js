import {common} from "./common.js";

// What is done out here is done once, not in each call.
const known = new Set(common);

function words(text) {
	return text.toLowerCase().match(/\p{L}+/gu) ?? [];
}

export default {
	count_words({text}) {
		const counts = {};
		let usual = 0;
		for (const word of words(text)) {
			counts[word] = (counts[word] ?? 0) + 1;
			if (known.has(word)) usual++;
		}
		return {counts, common: usual};
	},

	roll_dice({count = 1}) {
		return {dice: Array.from({length: count}, () => 1 + Math.floor(6 * Math.random()))};
	},

	add_line({line}) {
		if (line.includes("\n")) throw new Error("that is more than one line");
		files.append("/data/journal.txt", line + "\n");
		return "Added.";
	},
};
